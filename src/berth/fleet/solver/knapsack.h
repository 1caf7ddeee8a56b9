// The multiple-choice knapsack problem beneath every plan: choose exactly one option of each group
// at the least cost. An option costs something and uses amounts of some rows, and no row is
// used beyond its limit. (A group is a server, its options are its candidates; a row is the
// capacity of an accelerator type, a power budget, or how many servers of a priority may stay
// unserved.)
//
// Prices >= 0 of the rows give a lower bound: the sum over the groups of their cheapest option at
// these prices, less what the limits are worth. The duals of the linear relaxation (relaxation.h)
// make the bound greatest. At these prices an option's reduced cost is how much dearer it is than
// the cheapest option of its group; the distance of a choice from the bound is the sum of its
// reduced costs and of the worth of what it leaves unused.
//
// Pure; one thread each; the same problem gives the same answer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace berth::fleet {

/// A row that is exceeded by less than this is rounding: no amount that counts is so small.
inline constexpr double kFeasibilityTolerance = 1e-9;

/// Costs that differ by no more than this are equal.
inline double tolerance_of(double cost) {
  return 1e-9 * std::max(1.0, std::abs(cost));
}

/// An amount > 0 of a row.
struct Use {
  std::uint32_t row = 0;
  double amount = 0;
  bool operator==(const Use&) const = default;
};

struct Option {
  double cost = 0;
  std::uint32_t tag = 0;                   // for the caller's use
  std::size_t first_use = 0, end_use = 0;  // in Knapsack::uses
};

/// What limit and amounts of a row are: whole numbers, or any.
enum class RowKind : std::uint8_t { whole, any };

struct Knapsack {
  std::vector<std::size_t> begin{0};  // by group, with the end of the last one behind
  std::vector<Option> options;
  std::vector<Use> uses;       // by option
  std::vector<double> limits;  // by row
  std::vector<RowKind> kinds;  // by row
  bool whole_costs = false;    // every cost is a whole number
  double close_enough = 0;     // a search over many groups may end at this distance from the bound

  std::size_t groups() const { return begin.size() - 1; }
  std::span<const Option> of(std::size_t group) const {
    return std::span(options).subspan(begin[group], begin[group + 1] - begin[group]);
  }
  std::uint32_t add_row(double limit, RowKind kind = RowKind::whole) {
    limits.push_back(limit);
    kinds.push_back(kind);
    return static_cast<std::uint32_t>(limits.size() - 1);
  }
  /// Adds an option to the group that is not ended yet.
  void add(double cost, std::span<const Use> used, std::uint32_t tag = 0) {
    const std::size_t first = uses.size();
    uses.insert(uses.end(), used.begin(), used.end());
    options.push_back({cost, tag, first, uses.size()});
  }
  std::span<const Use> uses_of(const Option& option) const {
    return std::span(uses).subspan(option.first_use, option.end_use - option.first_use);
  }
  /// The sum over what the option uses, each amount times its row's factor.
  double weighted(const Option& option, const std::vector<double>& by_row) const {
    double sum = 0;
    for (std::size_t u = option.first_use; u < option.end_use; ++u)
      sum += uses[u].amount * by_row[uses[u].row];
    return sum;
  }
  void end_group() { begin.push_back(options.size()); }
};

/// Whether a search through the options can no longer be expected to prove an optimum, so that a
/// bound has to come from further rows. (At 1,000 groups such rows slow the search more than they
/// help it, at 10,000 only they help.)
inline bool is_many_groups(std::size_t groups) {
  return groups > 2000;
}

/// One option of each group, as indices into Knapsack::options.
using Chosen = std::vector<std::uint32_t>;

double cost_of(const Knapsack& knapsack, const Chosen& chosen);
/// What the chosen options leave of the limits, by row.
std::vector<double> left_of(const Knapsack& knapsack, const Chosen& chosen);

/// How much work a search may still do. An iteration looks at one option; a search ends when none
/// are left or stop() says so.
struct Budget {
  std::int64_t iterations = 0;
  const std::function<bool()>* stop = nullptr;
  bool stopped = false;  // stop() ended the search
  bool spent();
};

// repair.cc

/// Moves a choice into the limits by moves that are cheap at the prices. False if it did not
/// succeed.
bool repair(const Knapsack& knapsack, const std::vector<double>& prices, Chosen& chosen,
            Budget& budget);
/// Lowers the cost by moves of one group and of two. The choice is within the limits and stays so.
void improve(const Knapsack& knapsack, Chosen& chosen, Budget& budget);

// choices.cc

struct Answer {
  Chosen chosen;
  double cost = 0, bound = 0;
  std::vector<double> prices;  // by row
  double relaxed = 0;          // the bound of the relaxation, which these prices give
};
/// Solves the problem from `start`, which is within the limits. The answer is proven optimal where
/// cost and bound differ by rounding only (10^-9 of the cost). The search may end as soon as the
/// bound exceeds `useful`.
Answer solve(const Knapsack& knapsack, const Chosen& start, Budget& budget,
             double useful = HUGE_VAL);

}  // namespace berth::fleet
