// Capacity of a type that is bought in several ways: reserved, on demand and spot, each with its
// count and price. Such a type is two pools: what may be taken away (spot), for servers that allow
// it, and the rest, whose units are exchangeable. A server takes all its replicas from one pool.
//
// What counts in the choice is what a plan adds to the bill: reserved units are paid for whether
// they are used or not, so they are taken first and add nothing; then each unit on demand adds its
// price. That a replica moves costs as much as by the accelerators' own costs (value.h).
//
// Pure; any thread.
#pragma once

#include "berth/fleet/solver/solution.h"

namespace berth::fleet {

/// The same as solve_optimal(), by what a plan adds to the bill.
Optimum solve_by_purchase(const System& system, const Candidates& candidates,
                          const Execution& execution);

/// What a plan uses of a type and pays for it.
struct Bill {
  std::map<PurchaseKind, PurchaseTotal> kinds;
  double cost = 0;    // of all that is reserved, and of the rest that is used
  double unused = 0;  // the part of it that is reserved and not used
  // Of a unit that is used, on average over its pool: what it costs, and what it adds to the bill.
  double unit_cost = 0, unit_added = 0;
  double spot_cost = 0;  // of a unit, which is also what it adds
};
/// `price` is the value of one more unit that cannot be taken away, `spot_price` of one that can.
Bill bill_of(const Capacity& capacity, std::int64_t used, std::int64_t used_spot, double price,
             double spot_price);

}  // namespace berth::fleet
