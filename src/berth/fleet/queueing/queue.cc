#include "berth/fleet/queueing/queue.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "berth/base/result.h"

namespace berth::fleet {
namespace {

constexpr double kNegligible = 1e-12;  // of the sum so far
constexpr double kLarge = 1e100;
constexpr double kUnlikely = -46;  // ln of a probability that no sum notices, times any N and Q
constexpr double kStirling = 16;   // from here on its rest is exact

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

/// Weights of the states 0..N on a scale of their own: that of the state from which it was added.
struct Queue::Sums {
  double mass = 1;      // Σ p_k
  double first = 0;     // Σ k·p_k
  double second = 0;    // Σ k²·p_k
  double full = 0;      // p_N; 0 where it is negligible
  double alone = 0;     // p_0; 0 where it is negligible
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

Queue::Queue(int batch, int queue)
    : batch_(std::min(batch, kMostBatch)), queue_(std::min(queue, kMostBatch)) {
  BERTH_ASSERT(batch >= 1 && queue >= 0);
}

double Queue::step_ms(int batch) const {
  const Run run = run_at(batch);
  return run.fixed_ms + batch * run.each_ms;
}

void Queue::add_up(double rate, bool may_stop, int from, Sums& sums) const {
  double p = sums.from;
  for (int k = from + 1; k <= batch_;) {
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
  sums.alone = p;
}

/// While prefill is one chunk, τ(k) = f + g·k, so that p_k ∝ Π λ(f + g·j)/j: a negative binomial
/// with a = f/g + 1 and z = λg, P(k) = Γ(k + a)/(Γ(a)·k!)·(1 − z)^a·z^k (Abramowitz and Stegun,
/// 26.1.20). What is beyond the last such batch B has at most the probability e^x, Chernoff's
/// bound, x = a·ln((1 − z)(a + B)/a) + B·ln(z(a + B)/B), which is also P(B) but for its root. Where
/// that is not nothing the states beyond B, far fewer than those before, are taken away from the
/// whole; the moments follow from k·P(k) = z(k − 1 + a)·P(k − 1), summed. False: the sums are not
/// as simple.
bool Queue::add_unlimited(double rate, Sums& sums) const {
  const Run run = run_at(1);
  if (run.chunks != 1) return false;
  const double g = run.each_ms, f = run.fixed_ms, last = run.last;
  const double z = rate * g, left = 1 - z;
  if (!(g > 0 && left > 0.01 && last >= kStirling)) return false;
  const double a = f / g + 1, mean = a * z / left;
  if (!(mean < last)) return false;
  const double bound =
      a * std::log1p(last / a - z * (1 + last / a)) + last * std::log(z * (last + a) / last);
  double first_less = 0, second_less = 0;
  sums.mass = 1;
  sums.full = 0;
  if (bound > kUnlikely) {
    if (last < batch_ || a < kStirling) return false;
    const double rest = stirling_rest(last + a) - stirling_rest(a) - stirling_rest(last);
    sums.full = std::exp(bound + rest) * std::sqrt(a / (2 * std::numbers::pi * last * (last + a)));
    sums.mass -= tail(rate * f, z, sums.full);
    first_less = (last + a) * sums.full;
    second_less = (last + 1) * first_less;
  }
  const double odds = z / left;
  sums.alone = std::exp(a * std::log(left));
  sums.first = odds * (a * sums.mass - first_less);
  sums.second = odds * ((1 + a) * sums.first + a * sums.mass - second_less);
  return true;
}

/// Of states beyond N, were there no limit, and N weighed `p`.
double Queue::tail(double fixed, double each, double p) const {
  double mass = 0;
  for (int k = batch_ + 1; p > kNegligible; k += 4) {
    const Four w(each, fixed, k);
    mass += p * ((w.a + w.b) + (w.c + w.d));
    p *= w.d;
  }
  return mass;
}

/// Where the weights are greatest while prefill is one chunk, λτ(k) = k; N at saturation.
int Queue::start_at(double rate) const {
  if (rate * full_step_ms_ / batch_ >= 1) return batch_;
  const Run run = run_at(1);
  const double left = 1 - rate * run.each_ms;
  const double peak = left > 0 ? rate * run.fixed_ms / left : batch_;
  return static_cast<int>(std::min<double>(peak, batch_));
}

Queue::Present Queue::present_at(double rate) const {
  BERTH_ASSERT(rate > 0);
  const double r = rate * full_step_ms_ / batch_;  // p_{k+1} / p_k beyond N
  Sums sums;
  if (r < 1 && add_unlimited(rate, sums)) return present(r, sums);
  const int from = start_at(rate);
  // Below saturation weights fall on both sides of their peak; beyond it there may be two peaks.
  sums.first = from;
  sums.second = static_cast<double>(from) * from;
  add_up(rate, r < 1, from, sums);
  add_down(rate, r < 1, from, sums);
  return present(r, sums);
}

Queue::Weights Queue::weights_at(double rate) const {
  constexpr double kLeast = 1e-9;
  const int from = start_at(rate);
  std::vector<double> up{1}, down;  // downwards from `from` − 1
  double mass = 1;
  Run run = run_at(std::max(1, from));
  const auto ratio = [&](int k) {  // p_k / p_{k−1}
    if (k > run.last || k <= run.before) run = run_at(k);
    return rate * (run.each_ms + run.fixed_ms / k);
  };
  for (int k = from + 1; k <= batch_ && up.back() > kLeast * mass; ++k)
    mass += up.emplace_back(up.back() * ratio(k));
  double p = 1;
  for (int k = from; k > 0 && p > kLeast * mass; --k) mass += down.emplace_back(p /= ratio(k));
  Weights weights{from - static_cast<int>(down.size()), {down.rbegin(), down.rend()}};
  weights.of.insert(weights.of.end(), up.begin(), up.end());
  // N stands for those who wait too.
  const bool is_full = weights.first + static_cast<int>(weights.of.size()) == batch_ + 1;
  double free = mass;
  if (is_full) free -= weights.of.back();
  const Present present = present_at(rate);
  const double full = present.waits + present.loss;
  for (double& weight : weights.of) weight *= free > 0 ? (1 - full) / free : 0;
  if (is_full) weights.of.back() = full;
  return weights;
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
    if (sums.full > 0) waiting.sums = geometric(r, queue_);
    return waiting;
  }
  // The last state is the heaviest, so that the scale is made its weight; N + j weighs r^(j-Q).
  Geometric& w = waiting.sums;
  w = geometric(1 / r, queue_);
  const double all = queue_ + 1;
  w.mass *= r;
  w.second = all * all * w.mass - 2 * all * w.first * r + w.second * r;
  w.first = all * w.mass - w.first * r;
  w.last = 1;
  waiting.scale =
      std::exp(std::min(sums.scaled_down * std::log(kLarge) - queue_ * std::log(r), 230.0));
  waiting.full = 1;
  return waiting;
}

Queue::Present Queue::present(double r, const Sums& sums) const {
  const Waiting waiting = waiting_at(r, sums);
  const double mass = waiting.full * waiting.sums.mass;
  const double total = waiting.scale * sums.mass + mass;
  const double waiting_first = waiting.full * waiting.sums.first;
  Present is;
  is.loss = waiting.full * waiting.sums.last / total;
  is.in_service = (waiting.scale * sums.first + batch_ * mass) / total;
  is.waiting = waiting_first / total;
  is.alone = waiting.scale * sums.alone / total;
  // Those that find N to N + Q - 1 there: the last state is left out, N itself is among them.
  const double before_last = waiting.full * (waiting.sums.mass - waiting.sums.last);
  const double all_full = waiting.scale * sums.full + before_last;
  is.waits = std::max(0.0, all_full / total);

  // p_k ∝ λ^k, so that any mean grows by its covariance with k, the number present.
  const double present = is.in_service + is.waiting;
  is.loss_growth = is.loss * (batch_ + queue_ - present);
  is.in_service_growth =
      (waiting.scale * sums.second + batch_ * (batch_ * mass + waiting_first)) / total -
      is.in_service * present;
  is.waiting_growth =
      (batch_ * waiting_first + waiting.full * waiting.sums.second) / total - is.waiting * present;
  is.alone_growth = -is.alone * present;
  const double beyond = waiting_first - waiting.full * queue_ * waiting.sums.last;
  is.waits_growth = (batch_ * all_full + beyond) / total - is.waits * present;
  return is;
}

}  // namespace berth::fleet
