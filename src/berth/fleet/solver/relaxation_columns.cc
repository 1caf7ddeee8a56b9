// What a relaxation is made of: the options as columns, and which of them use the same.
#include <algorithm>
#include <bit>
#include <cmath>

#include "berth/fleet/solver/relaxation.h"

namespace berth::fleet {
namespace {

constexpr double kApart = 1e-10;      // of the costs' spread: by how much equal costs are set apart
constexpr double kWholeApart = 1e-7;  // what of equal whole costs all of a row is dearer than none

/// In 0..1, the same for the same place.
double quasi_random(std::uint64_t index) {
  std::uint64_t x = index * 0x9e3779b97f4a7c15u + 0x7f4a7c15u;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 32)) * 0x94d049bb133111ebu;
  return static_cast<double>(x >> 11) * 0x1p-53;
}

}  // namespace

/// The options as columns; of each group the cheapest is its key.
void Relaxation::add_columns() {
  double least = HUGE_VAL, most = -HUGE_VAL;
  for (const Option& o : knapsack_.options)
    least = std::min(least, o.cost), most = std::max(most, o.cost);
  const double apart = knapsack_.whole_costs ? kWholeApart : kApart * (most - least);
  // Of equal whole costs that is cheaper which takes a smaller part of its row.
  const auto share = [&](const Option& o) {
    if (!knapsack_.whole_costs || o.first_use == o.end_use) return 0.0;
    const Use& use = knapsack_.uses[o.first_use];
    return use.amount / std::max(1.0, knapsack_.limits[use.row]);
  };
  for (std::uint32_t g = 0; g < knapsack_.groups(); ++g) {
    std::size_t cheapest = knapsack_.begin[g];
    for (std::size_t o = knapsack_.begin[g]; o < knapsack_.begin[g + 1]; ++o) {
      const Option& option = knapsack_.options[o];
      columns_.push_back({.cost = option.cost + apart * (share(option) + 1e-3 * quasi_random(o)),
                          .is_allowed = true});
      group_of_.push_back(g);
      if (columns_[o].cost < columns_[cheapest].cost) cheapest = o;
    }
    group_keys_.push_back(static_cast<std::uint32_t>(cheapest));
  }
}

void Relaxation::find_patterns() {
  constexpr std::uint32_t kNone = UINT32_MAX;
  std::size_t slots = 16;
  while (slots < 2 * knapsack_.options.size()) slots *= 2;
  std::vector<std::uint32_t> table(slots, kNone);  // open addressing
  for (std::uint32_t o = 0; o < knapsack_.options.size(); ++o) {
    const std::span<const Use> uses = uses_of(o);
    std::uint64_t hash = 0;
    for (const Use& use : uses)
      hash = (hash ^ use.row ^ std::bit_cast<std::uint64_t>(use.amount)) * 0x9e3779b97f4a7c15u,
      hash ^= hash >> 32;
    std::size_t slot = hash & (slots - 1);
    while (table[slot] != kNone && !std::ranges::equal(uses, uses_of(option_of_[table[slot]])))
      slot = (slot + 1) & (slots - 1);
    if (table[slot] == kNone) {
      table[slot] = static_cast<std::uint32_t>(option_of_.size());
      option_of_.push_back(o);
    }
    pattern_of_.push_back(table[slot]);
  }
  for (auto* by_pattern : {&at_prices_, &at_along_, &at_ahead_})
    by_pattern->resize(option_of_.size());
}

}  // namespace berth::fleet
