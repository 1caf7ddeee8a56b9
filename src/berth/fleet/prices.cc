#include <algorithm>
#include <cmath>
#include <limits>

#include "berth/base/result.h"
#include "berth/fleet/choices.h"

namespace berth::fleet {
namespace {

constexpr double kForgotten = 35;  // exp(-35) is nothing beside 1
constexpr double kDearest =
    1e6;  // price of an average amount, in spreads: a price may be boundless
constexpr double kCooling = 0.25;
constexpr double kSpread = 1e-4;  // least smoothing, of the costs' spread, of the inner prices
constexpr int kStepsAtOnce = 6;   // Newton's, at one smoothing

/// The bound with its corners rounded off: each group's minimum becomes a weighted mean (weights
/// exp(-cost / smoothing)), and prices are kept positive by a logarithm. Twice differentiable and
/// concave, so Newton's method climbs it in few steps; as the smoothing goes to 0 it becomes the
/// bound itself.
class Climb {
 public:
  Climb(const Choices& choices, Budget& budget)
      : choices_(choices),
        budget_(budget),
        rows_(choices.limits.size()),
        gradient_(rows_),
        hessian_(rows_ * rows_) {
    double spread = 0, amounts = 0;
    for (std::size_t g = 0; g < choices.groups(); ++g) {
      double least = HUGE_VAL, most = -HUGE_VAL;
      for (const Option& o : choices.of(g)) {
        least = std::min(least, o.cost), most = std::max(most, o.cost);
        amounts += o.amount;
      }
      spread += most - least;
    }
    spread_ =
        std::max(spread / static_cast<double>(std::max<std::size_t>(1, choices.groups())), 1e-9);
    amount_ = std::max(
        amounts / static_cast<double>(std::max<std::size_t>(1, choices.options.size())), 1e-9);
  }

  Prices climb(const Prices& from, double enough, double precise) {
    best_.by_row = from.by_row;
    best_.bound = -HUGE_VAL;
    const bool anew = from.by_row.empty();
    if (anew) best_.by_row.assign(rows_, 0.1 * spread_ / amount_);
    std::vector<double> at = best_.by_row;
    for (double& price : at) price = std::max(price, 1e-6 * spread_ / amount_);
    value_ = evaluate(best_.by_row, 0);  // of the prices as they came, zeros and all
    for (double smoothing = anew ? 0.3 : std::min(0.01, 300 * precise);; smoothing *= kCooling) {
      smoothing_ = smoothing * spread_;
      value_ = evaluate(at, smoothing_);
      if (best_.inner.empty() || smoothing >= kSpread)
        best_.inner = at, best_.smoothing = smoothing_;
      const bool is_last_inner = smoothing >= kSpread && smoothing * kCooling < kSpread;
      for (int step = 0; step < (is_last_inner ? 5 * kStepsAtOnce : kStepsAtOnce); ++step) {
        if (best_.bound >= enough || budget_.spent()) return best_;
        if (!newton_step(at)) break;
        if (smoothing >= kSpread) best_.inner = at;
      }
      if (smoothing <= precise) break;
    }
    // What is all but worthless is worthless: rows that are not used up.
    for (std::size_t r = 0; r < rows_; ++r)
      if (at[r] * amount_ < 10 * smoothing_) at[r] = 0;
    evaluate(at, 0);
    if (anew) lower_the_boundless();
    return best_;
  }

 private:
  /// Where a row is only just enough its price may rise without end and the bound not fall: to the
  /// least price that is as good.
  void lower_the_boundless() {
    for (std::size_t r = 0; r < rows_; ++r) {
      if (best_.by_row[r] * amount_ < 10 * spread_) continue;
      std::vector<double> at = best_.by_row;
      const double enough = best_.bound - 1e-9 * std::max(1.0, std::abs(best_.bound));
      double low = 0, high = at[r];
      for (int halving = 0; halving < 100 && high - low > 1e-6 * high; ++halving) {
        at[r] = (low + high) / 2;
        (evaluate(at, 0) >= enough ? high : low) = at[r];
      }
      at[r] = high;
      best_.bound = evaluate(at, 0);
      best_.by_row = at;
    }
  }

  /// The smoothed bound at the prices, its gradient and Hessian (negated); keeps the best bound.
  double evaluate(const std::vector<double>& prices, double smoothing) {
    budget_.options -= static_cast<std::int64_t>(choices_.options.size());
    std::ranges::fill(gradient_, 0);
    std::ranges::fill(hessian_, 0);
    double hard = 0, soft = 0;
    for (std::size_t g = 0; g < choices_.groups(); ++g) {
      const auto options = choices_.of(g);
      costs_.resize(options.size());
      double least = HUGE_VAL;
      for (std::size_t i = 0; i < options.size(); ++i) {
        const Option& o = options[i];
        costs_[i] =
            o.row < 0 ? o.cost : o.cost + prices[static_cast<std::size_t>(o.row)] * o.amount;
        least = std::min(least, costs_[i]);
      }
      hard += least;
      if (smoothing > 0) soft += smooth_group(options, least, smoothing);
    }
    double worth = 0, barrier = 0;
    for (std::size_t r = 0; r < rows_; ++r) {
      worth += prices[r] * choices_.limits[r];
      gradient_[r] -= choices_.limits[r];
      if (smoothing == 0) continue;
      barrier += smoothing * std::log(prices[r]);
      gradient_[r] += smoothing / prices[r];
      hessian_[r * rows_ + r] += smoothing / (prices[r] * prices[r]);
    }
    // Of prices that are as good the first, which are the lower: some may rise without end.
    if (hard - worth > best_.bound + 1e-10 * std::abs(best_.bound) || best_.bound == -HUGE_VAL)
      best_.by_row = prices, best_.bound = hard - worth;
    return hard + soft - worth + barrier;
  }

  double smooth_group(std::span<const Option> options, double least, double smoothing) {
    double sum = 0;
    touched_.clear();
    for (std::size_t i = 0; i < options.size(); ++i) {
      const double above = (costs_[i] - least) / smoothing;
      if (above > kForgotten) continue;
      const double weight = above == 0 ? 1 : std::exp(-above);
      sum += weight;
      touched_.push_back({options[i].row, weight * options[i].amount,
                          weight * options[i].amount * options[i].amount});
    }
    for (std::size_t i = 0; i < touched_.size(); ++i) {
      auto [row, first, second] = touched_[i];
      if (row < 0) continue;
      const auto r = static_cast<std::size_t>(row);
      gradient_[r] += first / sum;
      if (touched_.size() == 1) continue;
      hessian_[r * rows_ + r] += second / sum / smoothing;
      for (const auto& [other, other_first, other_second] : touched_)
        if (other >= 0)
          hessian_[r * rows_ + static_cast<std::size_t>(other)] -=
              first * other_first / (sum * sum) / smoothing;
    }
    return -smoothing * std::log(sum);
  }

  /// Whether it went up by what is worth a further step.
  bool newton_step(std::vector<double>& at) {
    std::vector<double> step = direction();
    double promised = 0, longest = 1;
    const auto most = [&](std::size_t r) {
      return std::max(
          0.0, std::min(10 * at[r] + spread_ / amount_, kDearest * spread_ / amount_ - at[r]));
    };
    for (std::size_t r = 0; r < rows_; ++r) {
      promised += step[r] * gradient_[r];
      if (step[r] < 0) longest = std::min(longest, -0.9 * at[r] / step[r]);
      if (step[r] > 0) longest = std::min(longest, most(r) / step[r]);
    }
    if (!(promised > 1e-3 * smoothing_)) return false;
    if (longest < 0.05) {
      // Far from the top the Hessian says little about how far that is: each price as it may.
      for (std::size_t r = 0; r < rows_; ++r) step[r] = std::clamp(step[r], -0.9 * at[r], most(r));
      promised = 0, longest = 1;
    }
    const double before = value_;
    for (int tries = 0; tries < 20 && !budget_.spent(); ++tries, longest /= 3) {
      std::vector<double> there = at;
      for (std::size_t r = 0; r < rows_; ++r) there[r] += longest * step[r];
      const double value = evaluate(there, smoothing_);
      if (!(value > before + 0.01 * longest * promised)) continue;
      at = std::move(there);
      value_ = value;
      return true;
    }
    value_ = evaluate(at, smoothing_);
    return false;
  }

  /// Solves hessian · step = gradient by Cholesky; the Hessian is positive definite by its barrier.
  std::vector<double> direction() {
    std::vector<double>& h = hessian_;
    std::vector<double> x = gradient_;
    for (std::size_t i = 0; i < rows_; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        double sum = h[i * rows_ + j];
        for (std::size_t k = 0; k < j; ++k) sum -= h[i * rows_ + k] * h[j * rows_ + k];
        if (i == j)
          h[i * rows_ + i] = std::sqrt(std::max(sum, 1e-300));
        else
          h[i * rows_ + j] = sum / h[j * rows_ + j];
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

  struct Touched {
    std::int32_t row;
    double first, second;
  };

  const Choices& choices_;
  Budget& budget_;
  const std::size_t rows_;
  double spread_ = 1, amount_ = 1;
  double smoothing_ = 0, value_ = 0;
  std::vector<double> gradient_, hessian_, costs_;
  std::vector<Touched> touched_;
  Prices best_;
};

}  // namespace

bool Budget::spent() {
  if (!stopped && stop != nullptr && *stop && (*stop)()) stopped = true;
  return stopped || options <= 0;
}

double cost_of(const Choices& choices, const Chosen& chosen) {
  double cost = 0;
  for (const std::uint32_t o : chosen) cost += choices.options[o].cost;
  return cost;
}

std::vector<double> left_of(const Choices& choices, const Chosen& chosen) {
  std::vector<double> left = choices.limits;
  for (const std::uint32_t o : chosen)
    if (o >= choices.options.size())
      continue;  // not chosen yet
    else if (const Option& option = choices.options[o]; option.row >= 0)
      left[static_cast<std::size_t>(option.row)] -= option.amount;
  return left;
}

Prices best_prices(const Choices& choices, const Prices& from, double enough, double precise,
                   Budget& budget) {
  return Climb(choices, budget).climb(from, enough, precise);
}

}  // namespace berth::fleet
