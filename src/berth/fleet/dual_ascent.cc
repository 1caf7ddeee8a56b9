// Dual ascent on a smoothed bound: each group's minimum becomes a weighted mean (weights
// exp(-cost / smoothing)), and a logarithmic barrier keeps prices positive. The smoothed bound is
// concave and twice differentiable, so Newton's method needs few steps; as the smoothing goes to 0
// it becomes the bound itself.
#include <algorithm>
#include <cmath>

#include "berth/fleet/packing.h"

namespace berth::fleet {
namespace {

constexpr double kForgotten = 35;                              // exp(-35) is negligible beside 1
constexpr double kFirst = 0.3, kLast = 1e-7, kCooling = 0.25;  // smoothing, of the costs' spread
constexpr double kDearest = 1e6;  // of an average amount, in spreads: prices may be unbounded
constexpr int kStepsAtOnce = 8;   // Newton's, at one smoothing

class DualAscent {
 public:
  DualAscent(const Packing& packing, Budget& budget)
      : p_(packing), budget_(budget), rows_(p_.limits.size()), slope_(rows_), mean_(rows_) {
    double spread = 0, amounts = 0, uses = 0;
    for (std::size_t g = 0; g < p_.groups(); ++g) {
      const auto [least, most] = std::ranges::minmax_element(p_.of(g), {}, &Item::cost);
      spread += most->cost - least->cost;
    }
    for (const Item& item : p_.items)
      for (const Use& use : item.uses)
        if (use.row >= 0) amounts += use.amount, ++uses;
    spread_ = std::max(spread / static_cast<double>(std::max<std::size_t>(1, p_.groups())), 1e-9);
    amount_ = uses > 0 ? amounts / uses : 1;
  }

  DualSolution ascend(std::vector<double> at, double enough) {
    for (double& price : at)
      price = std::clamp(price, 1e-6 * spread_ / amount_, kDearest * spread_ / amount_);
    const std::vector<double> nothing(rows_, 0);
    keep(nothing, hard_bound(nothing));
    for (smoothing_ = kFirst * spread_; smoothing_ > kLast * spread_; smoothing_ *= kCooling) {
      value_ = evaluate(at);
      for (int step = 0; step < kStepsAtOnce; ++step)
        if (best_.bound >= enough || budget_.spent() || !newton_step(at)) break;
      if (best_.bound >= enough || budget_.spent()) return best_;
    }
    // A price close to 0 is 0: its row is not used up.
    for (double& price : at)
      if (price * amount_ < 1e-5 * spread_) price = 0;
    keep(at, hard_bound(at));
    lower_unbounded_prices();
    return best_;
  }

 private:
  /// Where a row is only just sufficient its price may rise without end and the bound not fall.
  /// Such a price is lowered to the least one that gives the same bound.
  void lower_unbounded_prices() {
    for (std::size_t r = 0; r < rows_; ++r) {
      if (best_.prices[r] * amount_ < 10 * spread_) continue;
      std::vector<double> at = best_.prices;
      const double enough = best_.bound - 1e-9 * std::max(1.0, std::abs(best_.bound));
      double low = 0, high = at[r];
      for (int halving = 0; halving < 100 && high - low > 1e-6 * high; ++halving) {
        at[r] = (low + high) / 2;
        (hard_bound(at) >= enough ? high : low) = at[r];
      }
      at[r] = high;
      best_ = {at, hard_bound(at)};
    }
  }

  double hard_bound(const std::vector<double>& prices) {
    budget_.iterations -= static_cast<std::int64_t>(p_.items.size());
    double bound = 0;
    for (std::size_t g = 0; g < p_.groups(); ++g) {
      double least = HUGE_VAL;
      for (const Item& item : p_.of(g)) least = std::min(least, priced(item, prices));
      bound += least;
    }
    for (std::size_t r = 0; r < rows_; ++r) bound -= prices[r] * p_.limits[r];
    return bound;
  }

  void keep(const std::vector<double>& prices, double bound) {
    if (bound > best_.bound) best_ = {prices, bound};
  }

  /// The smoothed bound at the prices, its slope and curvature (negated); keeps the best bound.
  double evaluate(const std::vector<double>& prices) {
    budget_.iterations -= static_cast<std::int64_t>(p_.items.size());
    std::ranges::fill(slope_, 0);
    curvature_.assign(rows_ * rows_, 0);
    double hard = 0, soft = 0;
    for (std::size_t g = 0; g < p_.groups(); ++g) {
      const auto items = p_.of(g);
      costs_.clear();
      for (const Item& item : items) costs_.push_back(priced(item, prices));
      const double least = *std::ranges::min_element(costs_);
      hard += least;
      soft += smooth_group(items, least);
    }
    double barrier = 0;
    for (std::size_t r = 0; r < rows_; ++r) {
      hard -= prices[r] * p_.limits[r];
      barrier += smoothing_ * std::log(prices[r]);
      slope_[r] += smoothing_ / prices[r] - p_.limits[r];
      curvature_[r * rows_ + r] += smoothing_ / (prices[r] * prices[r]);
    }
    keep(prices, hard);
    return hard + soft + barrier;
  }

  double smooth_group(std::span<const Item> items, double least) {
    double sum = 0;
    for (double& cost : costs_) {
      const double above = (cost - least) / smoothing_;
      cost = above > kForgotten ? 0 : above == 0 ? 1 : std::exp(-above);  // from here on weights
      sum += cost;
    }
    std::ranges::fill(mean_, 0);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (costs_[i] == 0) continue;
      const double weight = costs_[i] / sum;
      for (const Use& one : items[i].uses) {
        if (one.row < 0) continue;
        const auto r = static_cast<std::size_t>(one.row);
        mean_[r] += weight * one.amount;
        for (const Use& other : items[i].uses)
          if (other.row >= 0)
            curvature_[r * rows_ + static_cast<std::size_t>(other.row)] +=
                weight * one.amount * other.amount / smoothing_;
      }
    }
    for (std::size_t r = 0; r < rows_; ++r) {
      if (mean_[r] == 0) continue;
      slope_[r] += mean_[r];
      for (std::size_t o = 0; o < rows_; ++o)
        curvature_[r * rows_ + o] -= mean_[r] * mean_[o] / smoothing_;
    }
    return -smoothing_ * std::log(sum);
  }

  /// One step of Newton's method with a line search. True if another step is worthwhile.
  bool newton_step(std::vector<double>& at) {
    std::vector<double> step = direction();
    double promised = 0, longest = 1;
    const auto most = [&](std::size_t r) {
      return std::max(
          0.0, std::min(10 * at[r] + spread_ / amount_, kDearest * spread_ / amount_ - at[r]));
    };
    for (std::size_t r = 0; r < rows_; ++r) {
      promised += step[r] * slope_[r];
      if (step[r] < 0) longest = std::min(longest, -0.9 * at[r] / step[r]);
      if (step[r] > 0) longest = std::min(longest, most(r) / step[r]);
    }
    if (!(promised > 1e-3 * smoothing_)) return false;
    if (longest < 0.05) {
      // Far from the optimum the curvature is no guide: each price moves as far as it may.
      for (std::size_t r = 0; r < rows_; ++r) step[r] = std::clamp(step[r], -0.9 * at[r], most(r));
      promised = 0, longest = 1;
    }
    const double before = value_;
    for (int tries = 0; tries < 20 && !budget_.spent(); ++tries, longest /= 3) {
      std::vector<double> there = at;
      for (std::size_t r = 0; r < rows_; ++r) there[r] += longest * step[r];
      const double value = evaluate(there);
      if (!(value > before + 0.01 * longest * promised)) continue;
      at = std::move(there);
      value_ = value;
      return true;
    }
    value_ = evaluate(at);
    return false;
  }

  /// Solves curvature · step = slope by Cholesky; it is positive definite by its barrier.
  std::vector<double> direction() {
    std::vector<double>& h = curvature_;
    std::vector<double> x = slope_;
    for (std::size_t i = 0; i < rows_; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        double sum = h[i * rows_ + j];
        for (std::size_t k = 0; k < j; ++k) sum -= h[i * rows_ + k] * h[j * rows_ + k];
        h[i * rows_ + j] = i == j ? std::sqrt(std::max(sum, 1e-300)) : sum / h[j * rows_ + j];
      }
      for (std::size_t k = 0; k < i; ++k) x[i] -= h[i * rows_ + k] * x[k];
      x[i] /= h[i * rows_ + i];
    }
    for (std::size_t i = rows_; i-- > 0;) {
      for (std::size_t k = i + 1; k < rows_; ++k) x[i] -= h[k * rows_ + i] * x[k];
      x[i] /= h[i * rows_ + i];
    }
    return x;
  }

  const Packing& p_;
  Budget& budget_;
  const std::size_t rows_;
  double spread_ = 1, amount_ = 1;
  double smoothing_ = 0, value_ = 0;
  std::vector<double> slope_, curvature_, costs_, mean_;
  DualSolution best_;
};

}  // namespace

double priced(const Item& item, const std::vector<double>& prices) {
  double cost = item.cost;
  for (const Use& use : item.uses)
    if (use.row >= 0) cost += prices[static_cast<std::size_t>(use.row)] * use.amount;
  return cost;
}

DualSolution best_prices(const Packing& packing, const std::vector<double>& from, double enough,
                         Budget& budget) {
  return DualAscent(packing, budget).ascend(from, enough);
}

}  // namespace berth::fleet
