#include "berth/fleet/queue.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "berth/base/result.h"

namespace berth::fleet {
namespace {

constexpr double kNegligible = 1e-12;  // of the sum so far
constexpr double kLarge = 1e100;
constexpr double kNever = -46;    // ln of a probability that no sum notices, times any N and Q
constexpr double kStirling = 16;  // from here on its rest is exact

double power(double base, int exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if ((exponent & 1) != 0) result *= base;
  return result;
}

/// 1 / k, of the usual batches from a table: a division costs more than all else of a state.
constexpr int kTable = 2048;
constexpr auto kInverse = [] {
  std::array<double, kTable> table{};
  for (int i = 1; i < kTable; ++i) table[static_cast<std::size_t>(i)] = 1.0 / i;
  return table;
}();

double inverse(int k) {
  return k < kTable ? kInverse[static_cast<std::size_t>(k)] : 1.0 / k;
}

/// λτ(k)/k and the products with the next three, by which weights grow.
struct Four {
  double a, b, c, d;
  Four(double each, double fixed, int k) {
    double of[4];
    if (k + 3 < kTable) {
      const double* inverses = &kInverse[static_cast<std::size_t>(k)];
      for (int i = 0; i < 4; ++i) of[i] = each + fixed * inverses[i];
    } else {
      for (int i = 0; i < 4; ++i) of[i] = each + fixed / (k + i);
    }
    // Not one after the other: what follows waits for two products instead of four.
    a = of[0];
    b = a * of[1];
    c = b * of[2];
    d = b * (of[2] * of[3]);
  }
};

}  // namespace

/// Σ r^j, Σ j·r^j and Σ j²·r^j for j = 1..count, 0 <= r <= 1.
struct Geometric {
  double mass = 0, first = 0, second = 0;
  double last = 1;  // r^count
};

namespace {

Geometric geometric(double r, int count) {
  Geometric sums;
  const double left = 1 - r;
  if (count * left > 1e-3) {
    sums.last = power(r, count);
    sums.mass = r * (1 - sums.last) / left;
    sums.first = r * (1 - (count + 1) * sums.last + count * sums.last * r) / (left * left);
    const double n = count;
    sums.second =
        (r * (1 + r) -
         sums.last * r * ((n + 1) * (n + 1) - (2 * n * n + 2 * n - 1) * r + n * n * r * r)) /
        (left * left * left);
    return sums;
  }
  // Where r is nearly 1 the closed forms cancel.
  for (int j = 1; j <= count; ++j) {
    sums.last *= r;
    sums.mass += sums.last;
    sums.first += j * sums.last;
    sums.second += static_cast<double>(j) * j * sums.last;
  }
  return sums;
}

/// ln Γ(x) beyond Stirling's formula, for x >= 16 to the last digit (Abramowitz and
/// Stegun, 6.1.41).
double stirling_rest(double x) {
  const double y = 1 / (x * x);
  return (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260 - y / 1680))) / x;
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
  double second = 0;    // Σ k²·p_k
  double full = 0;      // p_N; 0 where it is negligible
  double from = 1;      // the weight of the state begun with
  int scaled_down = 0;  // how often by kLarge
  void add(double k, double p) { mass += p, first += k * p, second += k * k * p; }
  /// The states k, k + 1, k + 2 and k + 3, whose weights are p times the given ones.
  void add_four(double k, double p, double a, double b, double c, double d) {
    const double all = (a + b) + (c + d), by_place = b + 2 * c + 3 * d;
    mass += p * all;
    first += p * (k * all + by_place);
    second += p * (k * (k * all + 2 * by_place) + (b + 4 * c + 9 * d));
  }
  double scale_down(double p) {
    for (double* weight : {&mass, &first, &second, &full, &from, &p}) *weight /= kLarge;
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
  prompt_ms_ = (p.beta_ms + p.gamma_ms) * p.in_tokens;
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
      const Four w(each, fixed, k);
      sums.add_four(k, p, w.a, w.b, w.c, w.d);
      p *= w.d;
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
      const Four w(each, fixed, k - 3);
      p *= 1 / w.d;  // of k − 4; the next four need not wait for this division
      sums.add_four(k - 4, p, 1, w.a, w.b, w.c);
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

/// While prefill is one chunk, τ(k) = f + g·k, so that p_k ∝ Π λ(f + g·j)/j: a negative binomial
/// with a = f/g + 1 and z = λg, P(k) = Γ(k + a)/(Γ(a)·k!)·(1 − z)^a·z^k (Abramowitz and Stegun,
/// 26.1.20). What is beyond the last such batch B has at most the probability e^x, Chernoff's
/// bound, x = a·ln((1 − z)(a + B)/a) + B·ln(z(a + B)/B), which is also P(B) but for its root. Where
/// that is not nothing the states beyond B, far fewer than those before, are taken away from the
/// whole; the moments follow from k·P(k) = z(k − 1 + a)·P(k − 1), summed. False: the sums are not
/// as simple.
bool Queue::add_unlimited(double rate, Sums& sums) const {
  const double g = prompt_ms_ + decode_ms_, f = (1 + parameters_.out_tokens) * parameters_.alpha_ms;
  const double last = std::min<double>(unchunked_, parameters_.batch);
  const double z = rate * g, left = 1 - z;
  if (!(g > 0 && left > 0.01 && last >= kStirling)) return false;
  const double a = f / g + 1, mean = a * z / left;
  if (!(mean < last)) return false;
  const double bound =
      a * std::log1p(last / a - z * (1 + last / a)) + last * std::log(z * (last + a) / last);
  double first_less = 0, second_less = 0;
  sums.mass = 1;
  sums.full = 0;
  if (bound > kNever) {
    if (last < parameters_.batch || a < kStirling) return false;
    const double rest = stirling_rest(last + a) - stirling_rest(a) - stirling_rest(last);
    sums.full = std::exp(bound + rest) * std::sqrt(a / (2 * std::numbers::pi * last * (last + a)));
    sums.mass -= tail(rate * f, z, sums.full);
    first_less = (last + a) * sums.full;
    second_less = (last + 1) * first_less;
  }
  const double odds = z / left;
  sums.first = odds * (a * sums.mass - first_less);
  sums.second = odds * ((1 + a) * sums.first + a * sums.mass - second_less);
  return true;
}

/// Of states beyond N, were there no limit, and N weighed `p`.
double Queue::tail(double fixed, double each, double p) const {
  double mass = 0;
  for (int k = parameters_.batch + 1; p > kNegligible; k += 4) {
    const Four w(each, fixed, k);
    mass += p * ((w.a + w.b) + (w.c + w.d));
    p *= w.d;
  }
  return mass;
}

double Queue::unlimited_rate(double itl_ms, double ttft_ms) const {
  const auto& p = parameters_;
  const double g = prompt_ms_ + decode_ms_, m = p.out_tokens;
  const double token_ms = g / (1 + m), alone_ms = (1 + m) * p.alpha_ms + g;
  // With X in service a request takes τ(1) + g·X, the mean of the distribution above over λ.
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

Operation Queue::at(double rate, Growth* growth) const {
  BERTH_ASSERT(rate > 0);
  const int batch = parameters_.batch;
  const double r = rate * full_step_ms_ / batch;  // p_{k+1} / p_k beyond N
  Sums sums;
  if (r < 1 && add_unlimited(rate, sums)) return operation(rate, r, sums, growth);
  // Begin where the weights are greatest while prefill is one chunk: λτ(k) = k.
  const Run run = run_at(1);
  const double left = 1 - rate * run.each_ms;
  const double peak = left > 0 ? rate * run.fixed_ms / left : batch;
  const int from = r < 1 ? static_cast<int>(std::min<double>(peak, batch)) : batch;
  // Below saturation weights fall on both sides of their peak; beyond it there may be two peaks.
  sums.first = from;
  sums.second = static_cast<double>(from) * from;
  add_up(rate, r < 1, from, sums);
  add_down(rate, r < 1, from, sums);
  return operation(rate, r, sums, growth);
}

/// The states beyond N, of which the j-th weighs r^j times as much as N.
struct Queue::Waiting {
  Geometric sums;
  double scale = 1;  // of the states up to N
  double full = 0;   // what the sums are to be multiplied by
};

Queue::Waiting Queue::waiting_at(double r, const Sums& sums) const {
  Waiting waiting;
  waiting.full = sums.full;
  if (r <= 1) {
    if (sums.full > 0) waiting.sums = geometric(r, parameters_.queue);
    return waiting;
  }
  // The last state is the heaviest, so that the scale is made its weight; N + j weighs r^(j-Q).
  Geometric& w = waiting.sums;
  w = geometric(1 / r, parameters_.queue);
  const double all = parameters_.queue + 1;
  w.mass *= r;
  w.second = all * all * w.mass - 2 * all * w.first * r + w.second * r;
  w.first = all * w.mass - w.first * r;
  w.last = 1;
  waiting.scale = std::exp(
      std::min(sums.scaled_down * std::log(kLarge) - parameters_.queue * std::log(r), 230.0));
  waiting.full = 1;
  return waiting;
}

Operation Queue::operation(double rate, double r, const Sums& sums, Growth* growth) const {
  const auto& p = parameters_;
  const Waiting waiting = waiting_at(r, sums);
  const double mass = waiting.full * waiting.sums.mass;
  const double total = waiting.scale * sums.mass + mass;
  Operation o;
  o.loss = waiting.full * waiting.sums.last / total;
  o.throughput = rate * (1 - o.loss);
  o.in_service = (waiting.scale * sums.first + p.batch * mass) / total;
  const double waiting_count = waiting.full * waiting.sums.first / total;
  o.wait_ms = waiting_count / o.throughput;
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
  // p_k ∝ λ^k, so that any mean grows by its covariance with k, the number present.
  const double present = o.in_service + waiting_count;
  const double waiting_first = waiting.full * waiting.sums.first;
  const double served =
      (waiting.scale * sums.second + p.batch * (p.batch * mass + waiting_first)) / total -
      o.in_service * present;
  const double waited = (p.batch * waiting_first + waiting.full * waiting.sums.second) / total -
                        waiting_count * present;
  growth->loss = o.loss * (p.batch + p.queue - present);
  growth->throughput = o.throughput - rate * growth->loss;
  const double part = growth->throughput / o.throughput;
  growth->wait_ms = waited / o.throughput - o.wait_ms * part;
  const double service_ms = served / o.throughput - o.service_ms * part;
  const double prefill_ms = entry_ms > 0 ? run.chunks * token_ms * served : 0;
  growth->itl_ms = p.out_tokens > 0 ? (service_ms - prefill_ms) / p.out_tokens : 0;
  growth->ttft_ms = growth->wait_ms + prefill_ms + growth->itl_ms;
  return o;
}

}  // namespace berth::fleet
