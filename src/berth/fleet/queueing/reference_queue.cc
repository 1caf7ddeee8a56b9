#include "berth/fleet/queueing/reference_queue.h"

#include <algorithm>
#include <cmath>

#include "berth/base/result.h"

namespace berth::fleet {

ReferenceQueue::ReferenceQueue(const Parameters& parameters)
    : Queue(parameters.batch, parameters.queue), parameters_(parameters) {
  auto& p = parameters_;
  BERTH_ASSERT(p.in_tokens >= 0 && p.out_tokens >= 0 && p.in_tokens + p.out_tokens > 0);
  BERTH_ASSERT(p.alpha_ms >= 0 && p.beta_ms >= 0 && p.gamma_ms >= 0);
  BERTH_ASSERT(p.alpha_ms + p.beta_ms + p.gamma_ms > 0);
  p.batch = batch();
  p.queue = queue();
  decode_ms_ =
      p.beta_ms * p.out_tokens + p.gamma_ms * p.out_tokens * (p.in_tokens + (p.out_tokens + 1) / 2);
  unchunked_ = batch_of(1);
  prompt_ms_ = (p.beta_ms + p.gamma_ms) * p.in_tokens;
  set_full_step();
}

double ReferenceQueue::batch_of(double chunks) const {
  const double n = parameters_.in_tokens, m = parameters_.out_tokens;
  return std::floor((chunks + m) * (kBatchTokens - n / chunks) / (n + m));
}

double ReferenceQueue::chunks(double batch) const {
  if (batch <= unchunked_) return 1;
  // (i + m)(M − n/i) >= B(n + m) is a quadratic in i; rounding may be off by one.
  const double n = parameters_.in_tokens, m = parameters_.out_tokens;
  const double half = (kBatchTokens * m - n - batch * (n + m)) / 2;
  const double root = std::sqrt(half * half + kBatchTokens * m * n);
  // The one of the two forms that does not cancel.
  const double exact = half > 0 ? m * n / (half + root) : (root - half) / kBatchTokens;
  double chunks = std::max(1.0, std::ceil(exact));
  while (batch_of(chunks) < batch) ++chunks;
  while (chunks > 1 && batch_of(chunks - 1) >= batch) --chunks;
  return chunks;
}

Queue::Run ReferenceQueue::run_at(int batch) const {
  const auto& p = parameters_;
  Run run{};
  run.chunks = chunks(batch);
  const double prefill_ms = (p.beta_ms + p.gamma_ms * (run.chunks + 1) / 2) * p.in_tokens;
  run.each_ms = prefill_ms + decode_ms_;
  run.fixed_ms = (run.chunks + p.out_tokens) * p.alpha_ms;
  const double last = run.chunks == 1 ? unchunked_ : batch_of(run.chunks);
  run.last = static_cast<int>(std::clamp<double>(last, batch, p.batch));
  run.before = run.chunks == 1 ? 0 : static_cast<int>(std::max(0.0, batch_of(run.chunks - 1)));
  return run;
}

double ReferenceQueue::unlimited_rate(double itl_ms, double ttft_ms) const {
  const auto& p = parameters_;
  const double g = prompt_ms_ + decode_ms_, m = p.out_tokens;
  const double token_ms = g / (1 + m), alone_ms = (1 + m) * p.alpha_ms + g;
  // With X in service a request takes τ(1) + g·X, the mean over λ of the chain without a limit.
  const double idle_prefill_ms = p.alpha_ms - token_ms + prompt_ms_;  // and X·token_ms
  const double idle_itl_ms = m > 0 ? (alone_ms - idle_prefill_ms) / m : 0;
  const double itl_growth_ms = m > 0 ? (g - token_ms) / m : 0;
  const auto in_service = [](double target_ms, double idle_ms, double growth_ms) {
    if (target_ms == 0) return HUGE_VAL;
    return growth_ms > 0 ? (target_ms - idle_ms) / growth_ms : HUGE_VAL;
  };
  const double x =
      std::min(in_service(itl_ms, idle_itl_ms, itl_growth_ms),
               in_service(ttft_ms, idle_itl_ms + idle_prefill_ms, itl_growth_ms + token_ms));
  if (x == HUGE_VAL) return x;
  return x > 0 ? x / (alone_ms + g * x) : 0;
}

Operation ReferenceQueue::at(double rate, Growth* growth) const {
  const auto& p = parameters_;
  const Present present = present_at(rate);
  Operation o;
  o.loss = present.loss;
  o.throughput = rate * (1 - o.loss);
  o.in_service = present.in_service;
  o.wait_ms = present.waiting / o.throughput;
  o.service_ms = o.in_service / o.throughput;
  o.response_ms = o.wait_ms + o.service_ms;
  const Run run =
      run_at(static_cast<int>(std::clamp<double>(std::round(o.in_service), 1, p.batch)));
  const double prompt_ms = run.each_ms - decode_ms_;                  // w_p
  const double token_ms = run.each_ms / (run.chunks + p.out_tokens);  // δ
  const double entry_ms = p.alpha_ms + (o.in_service - 1) * token_ms;
  o.prefill_ms = run.chunks * std::max(0.0, entry_ms) + prompt_ms;
  // Traffic of prompts alone has no time between tokens.
  o.itl_ms = p.out_tokens > 0 ? (o.service_ms - o.prefill_ms) / p.out_tokens : 0;
  o.ttft_ms = o.wait_ms + o.prefill_ms + o.itl_ms;
  o.utilisation = o.in_service / p.batch;
  if (growth == nullptr) return o;
  growth->loss = present.loss_growth;
  growth->throughput = o.throughput - rate * growth->loss;
  const double part = growth->throughput / o.throughput;
  growth->wait_ms = present.waiting_growth / o.throughput - o.wait_ms * part;
  const double service_ms = present.in_service_growth / o.throughput - o.service_ms * part;
  const double prefill_ms = entry_ms > 0 ? run.chunks * token_ms * present.in_service_growth : 0;
  growth->itl_ms = p.out_tokens > 0 ? (service_ms - prefill_ms) / p.out_tokens : 0;
  growth->ttft_ms = growth->wait_ms + prefill_ms + growth->itl_ms;
  return o;
}

}  // namespace berth::fleet
