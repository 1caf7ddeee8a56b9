// The problem beneath every plan: of each group exactly one option, options cost and use up at most
// one of a few rows, no row is used beyond its limit, the least cost. (A group is a server, its
// options are its candidates, a row is the capacity of a type or how many servers of a priority may
// stay unserved.)
//
// Solved by Lagrangian prices for the rows: for any prices >= 0 the sum over the groups of their
// cheapest option at these prices, less what the limits are worth, is a bound. Whoever holds prices
// that make the bound greatest knows by how much each option is too dear (its reduced cost), and a
// plan's distance from the bound is the sum of its reduced costs and of the worth of what it
// leaves.
//
// Pure; one thread each; the same problem gives the same answer.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace berth::fleet {

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

// prices.cc

/// Counts what is looked at; a search ends when it is used up or stop() says so.
struct Budget {
  std::int64_t options = 0;  // that may still be looked at
  const std::function<bool()>* stop = nullptr;
  bool stopped = false;  // by stop()
  bool spent();
};

struct Prices {
  std::vector<double> by_row;
  double bound = 0;           // no choice costs less
  std::vector<double> inner;  // nearly the same, all above 0; with them every option of a group has
  double smoothing = 1;       // a part in it: exp(-cost at the prices / smoothing)
};
/// From `prices` (empty: from afar) to nearly the greatest bound, or one of at least `enough`.
/// `precise` in 0..1: with how small a smoothing it ends, of the costs' spread.
Prices best_prices(const Choices& choices, const Prices& from, double enough, double precise,
                   Budget& budget);

// repair.cc

/// A choice within the limits: each group takes an option so that the rows are used as its options'
/// parts use them; then moves of one group and of two make it better. False: none was found.
bool round_at(const Choices& choices, const Prices& prices, Chosen& chosen, Budget& budget);
/// Better by moves of one group and of two; it is within the limits, and stays so.
void improve(const Choices& choices, Chosen& chosen, Budget& budget);

// branch.cc

struct Answer {
  Chosen chosen;
  double cost = 0, bound = 0;
  std::vector<double> prices;  // by row
};
/// `start` is within the limits. The answer is proven where cost and bound are equal to within
/// rounding, which costs of 10^-9 parts are.
Answer solve(const Choices& choices, const Chosen& start, Budget& budget);

}  // namespace berth::fleet
