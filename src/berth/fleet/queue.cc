#include "berth/fleet/queue.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "berth/base/result.h"

namespace berth::fleet {
namespace {

constexpr double kNegligible = 1e-12;  // of the sum so far
constexpr double kLarge = 1e100;

double power(double base, int exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if ((exponent & 1) != 0) result *= base;
  return result;
}

/// 1 / k, of the usual batches from a table: a division costs more than all else of a state.
double inverse(int k) {
  static constexpr int kCount = 2048;
  static constexpr auto kInverse = [] {
    std::array<double, kCount> table{};
    for (int i = 1; i < kCount; ++i) table[static_cast<std::size_t>(i)] = 1.0 / i;
    return table;
  }();
  return k < kCount ? kInverse[static_cast<std::size_t>(k)] : 1.0 / k;
}

/// Σ r^j and Σ j·r^j for j = 1..count, 0 <= r <= 1.
struct Geometric {
  double mass = 0, first = 0;
  double last = 1;  // r^count
};

Geometric geometric(double r, int count) {
  Geometric sums;
  const double left = 1 - r;
  if (count * left > 1e-3) {
    sums.last = power(r, count);
    sums.mass = r * (1 - sums.last) / left;
    sums.first = r * (1 - (count + 1) * sums.last + count * sums.last * r) / (left * left);
    return sums;
  }
  // Where r is nearly 1 the closed forms cancel.
  for (int j = 1; j <= count; ++j) {
    sums.last *= r;
    sums.mass += sums.last;
    sums.first += j * sums.last;
  }
  return sums;
}

}  // namespace

/// Batches that need equally many chunks: there τ(B) = fixed_ms + B·each_ms.
struct Queue::Run {
  double chunks;
  double fixed_ms, each_ms;
  int last;    // batch
  int before;  // the last of the run before
};

/// Weights of the states 0..N on a scale of their own: that of the state from which it was added.
struct Queue::Sums {
  double mass = 1;      // Σ p_k
  double first = 0;     // Σ k·p_k
  double full = 0;      // p_N; 0 where it is negligible
  double from = 1;      // the weight of the state begun with
  int scaled_down = 0;  // how often by kLarge
  void add(double k, double p) { mass += p, first += k * p; }
  double scale_down(double p) {
    for (double* weight : {&mass, &first, &full, &from, &p}) *weight /= kLarge;
    ++scaled_down;
    return p;
  }
};

Queue::Queue(const Parameters& parameters) : parameters_(parameters) {
  auto& p = parameters_;
  BERTH_ASSERT(p.in_tokens >= 0 && p.out_tokens >= 0 && p.in_tokens + p.out_tokens > 0);
  BERTH_ASSERT(p.alpha_ms >= 0 && p.beta_ms >= 0 && p.gamma_ms >= 0);
  BERTH_ASSERT(p.alpha_ms + p.beta_ms + p.gamma_ms > 0 && p.batch >= 1 && p.queue >= 0);
  p.batch = std::min(p.batch, kMostBatch);
  p.queue = std::min(p.queue, kMostBatch);
  decode_ms_ =
      p.beta_ms * p.out_tokens + p.gamma_ms * p.out_tokens * (p.in_tokens + (p.out_tokens + 1) / 2);
  unchunked_ = batch_of(1);
  full_step_ms_ = step_ms(p.batch);
}

double Queue::batch_of(double chunks) const {
  const double n = parameters_.in_tokens, m = parameters_.out_tokens;
  return std::floor((chunks + m) * (kBatchTokens - n / chunks) / (n + m));
}

double Queue::chunks(double batch) const {
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

int Queue::last_batch_before(int batch) const {
  const double needed = chunks(batch);
  return needed == 1 ? 0 : static_cast<int>(std::max(0.0, batch_of(needed - 1)));
}

Queue::Run Queue::run_at(int batch) const {
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

double Queue::step_ms(int batch) const {
  const Run run = run_at(batch);
  return run.fixed_ms + batch * run.each_ms;
}

void Queue::add_up(double rate, bool may_stop, int from, Sums& sums) const {
  double p = sums.from;
  for (int k = from + 1; k <= parameters_.batch;) {
    const Run run = run_at(k);
    const double each = rate * run.each_ms, fixed = rate * run.fixed_ms;
    for (; k + 3 <= run.last; k += 4) {
      // Four at once: what follows waits for one product instead of four.
      const double a = each + fixed * inverse(k), b = a * (each + fixed * inverse(k + 1));
      const double c = b * (each + fixed * inverse(k + 2));
      const double d = c * (each + fixed * inverse(k + 3));
      sums.mass += p * ((a + b) + (c + d));
      sums.first += p * (k * ((a + b) + (c + d)) + (b + 2 * c + 3 * d));
      p *= d;
      if (may_stop && p < kNegligible * sums.mass) return;
      if (p > kLarge) p = sums.scale_down(p);
    }
    for (; k <= run.last; ++k) {
      p *= each + fixed * inverse(k);
      sums.add(k, p);
      if (may_stop && p < kNegligible * sums.mass) return;
      if (p > kLarge) p = sums.scale_down(p);
    }
  }
  sums.full = p;
}

void Queue::add_down(double rate, bool may_stop, int from, Sums& sums) const {
  double p = sums.from;
  for (int k = from; k > 0;) {
    const Run run = run_at(k);
    const double each = rate * run.each_ms, fixed = rate * run.fixed_ms;
    for (; k - 4 >= run.before; k -= 4) {
      // As above; the four divisions are one, from the lowest state upwards.
      const double a = each + fixed * inverse(k - 3), b = a * (each + fixed * inverse(k - 2));
      const double c = b * (each + fixed * inverse(k - 1));
      const double d = c * (each + fixed * inverse(k));
      p /= d;  // of k − 4
      sums.mass += p * ((1 + a) + (b + c));
      sums.first += p * ((k - 4) * ((1 + a) + (b + c)) + (a + 2 * b + 3 * c));
      if (may_stop && p < kNegligible * sums.mass) return;
      if (p > kLarge) p = sums.scale_down(p);
    }
    for (; k > run.before; --k) {
      p /= each + fixed * inverse(k);
      sums.add(k - 1, p);
      if (may_stop && p < kNegligible * sums.mass) return;
      if (p > kLarge) p = sums.scale_down(p);
    }
  }
}

Operation Queue::at(double rate) const {
  BERTH_ASSERT(rate > 0);
  const int batch = parameters_.batch;
  const double r = rate * full_step_ms_ / batch;  // p_{k+1} / p_k beyond N
  // Begin where the weights are greatest while prefill is one chunk: λτ(k) = k.
  const Run run = run_at(1);
  const double left = 1 - rate * run.each_ms;
  const double peak = left > 0 ? rate * run.fixed_ms / left : batch;
  const int from = r < 1 ? static_cast<int>(std::min<double>(peak, batch)) : batch;
  // Below saturation weights fall on both sides of their peak; beyond it there may be two peaks.
  Sums sums;
  sums.first = from;
  add_up(rate, r < 1, from, sums);
  add_down(rate, r < 1, from, sums);
  return operation(rate, r, sums);
}

Operation Queue::operation(double rate, double r, const Sums& sums) const {
  const auto& p = parameters_;
  Geometric waiting = geometric(std::min(r, 1 / r), p.queue);
  double scale = 1, full = sums.full;
  if (r > 1) {
    // The last state is the heaviest, so that the scale is made its weight; N + j weighs r^(j-Q).
    waiting.mass *= r;
    waiting.first = (p.queue + 1) * waiting.mass - waiting.first * r;
    scale = std::exp(std::min(sums.scaled_down * std::log(kLarge) - p.queue * std::log(r), 230.0));
    full = 1;
    waiting.last = 1;
  }
  const double waiting_mass = full * waiting.mass;
  const double total = scale * sums.mass + waiting_mass;
  Operation o;
  o.loss = full * waiting.last / total;
  o.throughput = rate * (1 - o.loss);
  o.in_service = (scale * sums.first + p.batch * waiting_mass) / total;
  o.wait_ms = full * waiting.first / total / o.throughput;
  o.service_ms = o.in_service / o.throughput;
  o.response_ms = o.wait_ms + o.service_ms;
  const Run run =
      run_at(static_cast<int>(std::clamp<double>(std::round(o.in_service), 1, p.batch)));
  const double prompt_ms = run.each_ms - decode_ms_;                  // w_p
  const double token_ms = run.each_ms / (run.chunks + p.out_tokens);  // δ
  o.prefill_ms = run.chunks * std::max(0.0, p.alpha_ms + (o.in_service - 1) * token_ms) + prompt_ms;
  // Traffic of prompts alone has no time between tokens.
  o.itl_ms = p.out_tokens > 0 ? (o.service_ms - o.prefill_ms) / p.out_tokens : 0;
  o.ttft_ms = o.wait_ms + o.prefill_ms + o.itl_ms;
  o.utilisation = o.in_service / p.batch;
  return o;
}

}  // namespace berth::fleet
