// The problem beneath every plan: of each group exactly one option, options cost and use up at most
// one of a few rows, no row is used beyond its limit, the least cost. (A group is a server, its
// options are its candidates, a row is the capacity of a type or how many servers of a priority may
// stay unserved.)
//
// For any prices >= 0 of the rows the sum over the groups of their cheapest option at these prices,
// less what the limits are worth, is a bound. Whoever holds prices that make it greatest (the
// duals of the linear relaxation, relaxation.h) knows by how much each option is too dear (its
// reduced cost), and a choice's distance from the bound is the sum of its reduced costs and of the
// worth of what it leaves.
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

/// Limits and amounts are whole numbers: what a row is used beyond its limit by less is rounding.
inline constexpr double kFeasibilityTolerance = 1e-9;

/// Costs that differ by no more than this are equal.
inline double tolerance_of(double cost) {
  return 1e-9 * std::max(1.0, std::abs(cost));
}

struct Option {
  double cost = 0;
  double amount = 0;      // of the row
  std::int32_t row = -1;  // -1: uses none
  std::uint32_t tag = 0;  // the caller's own
};

struct Choices {
  std::vector<std::size_t> begin{0};  // by group, and the end of the last
  std::vector<Option> options;
  std::vector<double> limits;  // by row
  bool whole_costs = false;    // every cost is a whole number
  double close_enough = 0;     // many groups: how far from the bound a search may end

  std::size_t groups() const { return begin.size() - 1; }
  std::span<const Option> of(std::size_t group) const {
    return std::span(options).subspan(begin[group], begin[group + 1] - begin[group]);
  }
  void end_group() { begin.push_back(options.size()); }
};

/// The place of one option of each group in Choices::options.
using Chosen = std::vector<std::uint32_t>;

double cost_of(const Choices& choices, const Chosen& chosen);
std::vector<double> left_of(const Choices& choices, const Chosen& chosen);  // of the limits

/// Counts what is looked at; a search ends when it is used up or stop() says so.
struct Budget {
  std::int64_t options = 0;  // that may still be looked at
  const std::function<bool()>* stop = nullptr;
  bool stopped = false;  // by stop()
  bool spent();
};

// repair.cc

/// Makes a choice one within the limits, by moves that are cheap at the prices. False: it is not.
bool repair(const Choices& choices, const std::vector<double>& prices, Chosen& chosen,
            Budget& budget);
/// Better by moves of one group and of two; it is within the limits, and stays so.
void improve(const Choices& choices, Chosen& chosen, Budget& budget);

// choices.cc

struct Answer {
  Chosen chosen;
  double cost = 0, bound = 0;
  std::vector<double> prices;  // by row
  double relaxed = 0;          // the bound that these prices give
};
/// `start` is within the limits. The answer is proven where cost and bound are equal to within
/// rounding, which costs of 10^-9 parts are. It may end as soon as the bound is beyond `useful`.
Answer solve(const Choices& choices, const Chosen& start, Budget& budget, double useful = HUGE_VAL);

}  // namespace berth::fleet
