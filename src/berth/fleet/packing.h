// The problem of choices.h with ways that use up to two rows: of each group exactly one way, no row
// used beyond its limit, the least cost. (A mix of two accelerators uses two types.)
//
// Prices for the rows give a bound, as there; what is too dear at them to be in any better choice
// is dropped; the rest is searched depth first, by reduced costs:
// all of it where that is little, else neighbourhood after neighbourhood.
//
// Pure; one thread each; the same problem gives the same answer.
#pragma once

#include <array>
#include <cmath>

#include "berth/fleet/choices.h"

namespace berth::fleet {

struct Use {
  std::int32_t row = -1;  // -1: none
  double amount = 0;
};

struct Way {
  double cost = 0;
  std::array<Use, 2> uses{};  // of different rows
  std::uint32_t tag = 0;      // the caller's own
};

struct Packing {
  std::vector<std::size_t> begin{0};  // by group, and the end of the last
  std::vector<Way> ways;
  std::vector<double> limits;  // by row
  bool whole_costs = false;    // every cost is a whole number
  double close_enough = 0;     // how far from the bound a search of many groups may end

  std::size_t groups() const { return begin.size() - 1; }
  std::span<const Way> of(std::size_t group) const {
    return std::span(ways).subspan(begin[group], begin[group + 1] - begin[group]);
  }
};

// packing_prices.cc

/// The cost, and what the rows that it uses are worth.
double priced(const Way& way, const std::vector<double>& prices);

struct Peak {
  std::vector<double> prices;  // by row, >= 0
  double bound = -HUGE_VAL;    // no choice costs less
};
/// From `from` to nearly the greatest bound, or one of at least `enough`.
Peak best_prices(const Packing& packing, const std::vector<double>& from, double enough,
                 Budget& budget);

// packing.cc

struct Packed {
  Chosen chosen;  // a place in ways for each group
  double cost = 0, bound = 0;
  std::vector<double> prices;  // by row
};

/// `start` is within the limits; `prices`: where to climb from. The answer costs no more than the
/// start, and is proven where cost and bound are equal to within rounding (10^-9 parts).
Packed pack(const Packing& packing, const Chosen& start, const std::vector<double>& prices,
            Budget& budget);

}  // namespace berth::fleet
