// The multidimensional multiple-choice knapsack: as in knapsack.h exactly one item of each group is
// chosen at the least cost, but an item may use up to two rows. (A mix of two accelerators uses two
// types.)
//
// Prices of the rows give a lower bound. Items that are too dear at these prices to be part of any
// better choice are dropped. The rest is searched depth first by reduced costs: as a whole where it
// is small, else neighbourhood after neighbourhood.
//
// Pure; one thread each; the same problem gives the same answer.
#pragma once

#include <array>
#include <cmath>

#include "berth/fleet/knapsack.h"

namespace berth::fleet {

struct Use {
  std::int32_t row = -1;  // -1: no row
  double amount = 0;
};

struct Item {
  double cost = 0;
  std::array<Use, 2> uses{};  // of different rows
  std::uint32_t tag = 0;      // for the caller's use
};

struct Packing {
  std::vector<std::size_t> begin{0};  // by group, with the end of the last one behind
  std::vector<Item> items;
  std::vector<double> limits;  // by row
  bool whole_costs = false;    // every cost is a whole number
  double close_enough = 0;     // a search over many groups may end at this distance from the bound

  std::size_t groups() const { return begin.size() - 1; }
  std::span<const Item> of(std::size_t group) const {
    return std::span(items).subspan(begin[group], begin[group + 1] - begin[group]);
  }
};

// dual_ascent.cc

/// The cost of the item and the worth of what it uses at the prices.
double priced(const Item& item, const std::vector<double>& prices);

struct DualSolution {
  std::vector<double> prices;  // by row, >= 0
  double bound = -HUGE_VAL;    // a lower bound on every choice
};
/// Dual ascent from the prices `from` to nearly the greatest bound, or to one of at least `enough`.
DualSolution best_prices(const Packing& packing, const std::vector<double>& from, double enough,
                         Budget& budget);

// packing.cc

struct Packed {
  Chosen chosen;  // an index into items for each group
  double cost = 0, bound = 0;
  std::vector<double> prices;  // by row
};

/// Solves the problem from `start`, which is within the limits; `prices` begin the dual ascent. The
/// answer costs no more than the start. It is proven optimal where cost and bound differ by
/// rounding only (10^-9 of the cost).
Packed pack(const Packing& packing, const Chosen& start, const std::vector<double>& prices,
            Budget& budget);

}  // namespace berth::fleet
