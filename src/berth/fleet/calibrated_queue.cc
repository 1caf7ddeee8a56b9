#include "berth/fleet/calibrated_queue.h"

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>

#include "berth/base/result.h"

namespace berth::fleet {
namespace {

constexpr double kMostPrefill = 0.95;  // of the time: beyond it the gated queue has no equilibrium
constexpr double kFewChunks = 20;      // more are counted as if none were partly filled

/// A figure and its derivative by ln λ.
struct Dual {
  double is = 0, grows = 0;
  Dual(double constant) : is(constant) {}
  Dual(double value, double growth) : is(value), grows(growth) {}
};
Dual operator+(Dual a, Dual b) {
  return {a.is + b.is, a.grows + b.grows};
}
Dual operator-(Dual a, Dual b) {
  return {a.is - b.is, a.grows - b.grows};
}
Dual operator*(Dual a, Dual b) {
  return {a.is * b.is, a.grows * b.is + a.is * b.grows};
}
Dual operator/(Dual a, Dual b) {
  const double ratio = a.is / b.is;
  return {ratio, (a.grows - ratio * b.grows) / b.is};
}
Dual at_most(Dual a, double most) {
  return a.is < most ? a : Dual(most);
}
Dual at_least(Dual a, double least) {
  return a.is > least ? a : Dual(least);
}

/// P(x > least), and E x of these, for x of a gamma distribution with the mean and the coefficient
/// of variation, which may be 0.
struct Above {
  double part = 0, mean = 0;
};
Above above(double mean, double cv, double least) {
  if (mean <= 0) return {};
  if (least <= 0) return {1, mean};
  if (cv == 0) return mean > least ? Above{1, mean} : Above{};
  const double shape = 1 / (cv * cv), x = least * shape / mean;
  return {boost::math::gamma_q(shape, x), mean * boost::math::gamma_q(shape + 1, x)};
}

/// E ⌈n / M⌉, and the same weighted by n.
struct Chunks {
  double count = 1, by_token = 1;
};
Chunks chunks_of(double mean, double cv) {
  if (mean > kFewChunks * kBatchTokens)
    return {mean / kBatchTokens + 0.5, mean * (1 + cv * cv) / kBatchTokens + 0.5};
  Chunks chunks;
  for (int i = 1;; ++i) {
    const Above more = above(mean, cv, i * kBatchTokens);
    if (more.mean <= 1e-6 * mean) return chunks;
    chunks.count += more.part;
    chunks.by_token += more.mean / mean;
  }
}

/// E max(0, Σ − hidden) for a sum of a Poisson number of gamma-distributed works, by the work:
/// what remains of a prompt's work where a step hides so much of it.
double unhidden(double work_ms, double cv, double hidden_ms, double works_a_step) {
  constexpr double kMany = 50;  // they hardly ever hide behind the step
  if (works_a_step > kMany) return std::max(0.0, work_ms - hidden_ms / works_a_step);
  double probability = std::exp(-works_a_step), sum_ms = 0, left = 1 - probability;
  for (int i = 1; left > 1e-6; ++i) {
    probability *= works_a_step / i;
    left -= probability;
    const Above more = above(i * work_ms, cv / std::sqrt(i), hidden_ms);
    sum_ms += probability * (more.mean - hidden_ms * more.part);
  }
  return sum_ms / works_a_step;
}

/// How much longer a wait is than one for servers whose service is exponential and whose arrivals
/// are Poisson: Cosmetatos' approximation where service varies less, (1 + variation) / 2 where it
/// varies more; and of either the part that Allen and Cunneen's approximation gives to arrivals.
Dual wait_factor(double service_variation, double arrival_variation, double servers, Dual load) {
  const double by_arrivals = (arrival_variation + service_variation) / (1 + service_variation);
  if (service_variation >= 1) return by_arrivals * (1 + service_variation) / 2;
  const double slope = (servers - 1) * (std::sqrt(4 + 5 * servers) - 2) / (16 * servers);
  const Dual u = at_most(load, 1);
  const Dual fixed = at_most(0.5 * (1 + (1 - u) * slope / u), 1);
  return by_arrivals * (service_variation + (1 - service_variation) * fixed);
}

}  // namespace

CalibratedQueue::CalibratedQueue(const Demand& demand, const Performance& p, int batch_size)
    : Queue(batch_size, demand.max_queue) {
  const double n = demand.in_tokens, m = demand.out_tokens;
  BERTH_ASSERT(n >= 0 && m >= 0 && n + m > 0);
  BERTH_ASSERT(p.alpha_ms >= 0 && p.beta_ms >= 0 && p.gamma_ms >= 0);
  const double square = m * m * (1 + demand.out_cv * demand.out_cv);  // E m²
  const double beta_prefill_ms = p.beta_prefill_ms > 0 ? p.beta_prefill_ms : p.beta_ms;
  const Chunks chunks = chunks_of(n, demand.in_cv);
  alpha_ms_ = p.alpha_ms;
  offset_ms_ = p.ttft_offset_ms;
  decodes_ = std::max(0.0, m - 1);
  chunks_ = chunks.count;
  steps_ = chunks_ + decodes_;
  within_tokens_ = static_cast<int>(std::clamp(kBatchTokens * steps_ / (n + decodes_), 1.0, 1e6));
  prompt_ms_ = beta_prefill_ms * n;
  if (p.form == StepForm::max && n > 0)
    prompt_ms_ = chunks_ * unhidden(prompt_ms_ / chunks_, demand.in_cv, alpha_ms_,
                                    chunks_ * std::min(batch(), within_tokens_) / steps_);
  prompt_ms_ += p.gamma_ms * n * (chunks.by_token + 1) / 2;
  const double context = decodes_ > 0 ? n + square / (2 * m) : 0;
  others_ms_ = (p.beta_ms + p.gamma_ms * context) * decodes_ / steps_;
  work_ms_ = prompt_ms_ + p.beta_ms * decodes_ +
             p.gamma_ms * (n * decodes_ + std::max(0.0, (square - m) / 2));
  prompt_variation_ = demand.in_cv * demand.in_cv;
  service_variation_ = (square - m * m) / (steps_ * steps_);
  arrival_variation_ = demand.arrival_cv * demand.arrival_cv;
  set_full_step();
}

/// Where steps are full of tokens, a larger batch only makes its requests wait for one another.
Queue::Run CalibratedQueue::run_at(int batch_size) const {
  const int last = std::min(within_tokens_, batch());
  if (batch_size <= last) return {1, steps_ * alpha_ms_, work_ms_, last, 0};
  return {2, 0, work_ms_ + steps_ * alpha_ms_ / within_tokens_, batch(), last};
}

double CalibratedQueue::unlimited_rate(double itl_ms, double ttft_ms) const {
  const double each_ms = work_ms_ / steps_;  // of a step, for one more request
  const auto present = [&](double target_ms, double step_ms) {
    return target_ms == 0 || each_ms == 0 ? HUGE_VAL : (step_ms - alpha_ms_) / each_ms;
  };
  const double x = std::min(present(itl_ms, itl_ms),
                            present(ttft_ms, (ttft_ms - offset_ms_ - prompt_ms_) / 1.5));
  if (x == HUGE_VAL) return x;
  return x > 0 ? x / (steps_ * alpha_ms_ + x * work_ms_) : 0;
}

/// A prompt waits for the step that is under way, and is taken in together with those that came
/// during that step: a gated queue, whose steps are longer by the prompts that came during the one
/// before (Takagi, Analysis of Polling Systems, 1986). With k others present a step without prompts
/// takes A = alpha + k·others; a prompt's work is s; prompts take the part r = λs of the time; a
/// step takes T = A / (1 − r) with variance λ E s² T / (1 − r²), of which an arrival sees
/// R = E τ² / T. Where arrivals come in bursts, the variance of their number takes the place of the
/// Poisson one's.
Operation CalibratedQueue::at(double rate, Growth* growth) const {
  const Present present = present_at(rate);
  const double servers = batch();
  const Dual lambda(rate, rate), loss(present.loss, present.loss_growth);
  const Dual in_service(present.in_service, present.in_service_growth);
  const Dual alone(present.alone, present.alone_growth);
  const Dual waits(present.waits, present.waits_growth);
  const Dual served = lambda * (1 - loss);
  const Dual wait_ms =
      Dual(present.waiting, present.waiting_growth) / served *
      wait_factor(service_variation_, arrival_variation_, servers, lambda / service_rate(batch()));
  const Dual service_ms = in_service / served;

  /// From entering to the first token, where others are present.
  const auto prefill_ms = [&](Dual others) {
    const Dual step_ms = alpha_ms_ + others_ms_ * others;
    const Dual prompt_ms = prompt_ms_ + (chunks_ - 1) * step_ms;
    const Dual part = at_most(served * prompt_ms, kMostPrefill);
    const Dual seen_ms = step_ms / (1 - part) + served * prompt_ms * prompt_ms *
                                                    (arrival_variation_ + prompt_variation_) /
                                                    (1 - part * part);
    return step_ms + prompt_ms + (0.5 + part) * seen_ms;
  };
  const Dual some = 1 - loss - alone - waits;  // others, and a free place
  Dual prefill = alone * (alpha_ms_ + prompt_ms_ + (chunks_ - 1) * alpha_ms_);
  if (some.is > 1e-9)
    prefill = prefill + some * prefill_ms((in_service - servers * (waits + loss)) / some);
  if (waits.is > 0) prefill = prefill + waits * prefill_ms(servers - 1);
  prefill = prefill / (1 - loss);

  // What a request is in service for, less its own prompt's work, is spread over its steps.
  const Dual itl_ms =
      decodes_ > 0 ? at_least((service_ms - prompt_ms_) / steps_, alpha_ms_) : Dual(0);
  const Dual ttft_ms = wait_ms + prefill + offset_ms_;
  Operation o;
  o.throughput = served.is;
  o.loss = loss.is;
  o.in_service = in_service.is;
  o.response_ms = wait_ms.is + service_ms.is + offset_ms_;
  o.service_ms = service_ms.is;
  o.wait_ms = wait_ms.is;
  o.prefill_ms = prefill.is;
  o.itl_ms = itl_ms.is;
  o.ttft_ms = ttft_ms.is;
  o.utilisation = in_service.is / servers;
  if (growth != nullptr)
    *growth = {served.grows, loss.grows, wait_ms.grows, itl_ms.grows, ttft_ms.grows};
  return o;
}

}  // namespace berth::fleet
