#include "berth/fleet/model/purchase.h"

#include <algorithm>

#include "berth/fleet/model/system_view.h"
#include "berth/fleet/model/value.h"
#include "berth/fleet/solver/knapsack.h"

namespace berth::fleet {
namespace {

Purchase purchase_of(const Capacity& capacity, PurchaseKind kind) {
  const auto found = capacity.purchases.find(kind);
  return found == capacity.purchases.end() ? Purchase{} : found->second;
}

/// The candidates as a problem of solve_optimal(): its types are pools, first those of what cannot
/// be taken away, by type, then those of spot. A candidate that may be spot is there twice.
class Pools {
 public:
  Pools(const System& system, const Candidates& candidates)
      : candidates_(candidates), limits_(limits_of(system, candidates)), steps_(limits_.size()) {
    pooled_.model = candidates.model;
    pooled_.servers = candidates.servers;
    pooled_.priority = candidates.priority;
    pooled_.types = candidates.types;
    pooled_.types.insert(pooled_.types.end(), candidates.types.begin(), candidates.types.end());
    pooled_.type_of = candidates.type_of;
    for (const std::uint32_t type : candidates.type_of)
      pooled_.type_of.push_back(type + static_cast<std::uint32_t>(candidates.types.size()));
    for (const auto& type : candidates.types) add_pools(system.capacities, type);
    for (std::size_t s = 0; s < candidates.servers.size(); ++s) {
      pooled_.begin.push_back(pooled_.all.size());
      const Server& server = system.servers.at(candidates.servers[s]);
      for (std::size_t i = candidates.begin[s]; i < candidates.begin[s + 1]; ++i)
        add_candidate(server, i);
    }
    pooled_.begin.push_back(pooled_.all.size());
  }

  Optimum solve(const Execution& execution) const {
    Optimum optimum = solve_optimal(pooled_, limits_, execution, steps_);
    for (Pick& pick : optimum.solution) {
      if (pick.candidate == nullptr) continue;
      const auto at = static_cast<std::size_t>(pick.candidate - pooled_.all.data());
      pick.is_spot = pick.candidate->accelerator != Candidate::kNothing &&
                     pick.candidate->accelerator >= candidates_.accelerators.size();
      pick.candidate = &candidates_.all[places_[at]];
    }
    const auto spot = optimum.prices.begin() + static_cast<std::ptrdiff_t>(capacities_.size());
    optimum.spot_prices.assign(spot, optimum.prices.end());
    optimum.prices.erase(spot, optimum.prices.end());
    return optimum;
  }

 private:
  void add_pools(const std::map<std::string, Capacity>& capacities, const std::string& type) {
    const auto found = capacities.find(type);
    const bool has_kinds = found != capacities.end() && !found->second.purchases.empty();
    const std::size_t t = capacities_.size();
    capacities_.push_back(has_kinds ? &found->second : nullptr);
    limits_.push_back(has_kinds ? purchase_of(found->second, PurchaseKind::spot).count : 0);
    steps_.emplace_back();
    if (!has_kinds) return;
    limits_[t] -= limits_.back();
    if (const auto reserved = purchase_of(found->second, PurchaseKind::reserved).count)
      steps_[t] = {reserved, purchase_of(found->second, PurchaseKind::on_demand).cost};
  }

  void add_candidate(const Server& server, std::size_t place) {
    const Candidate& c = candidates_.all[place];
    const Capacity* capacity = c.accelerator == Candidate::kNothing
                                   ? nullptr
                                   : capacities_[candidates_.type_of[c.accelerator]];
    if (capacity == nullptr) return add(c, place, c.value);
    // The price counts by either queue model, also where the server stays as it is.
    const double change = value_of(server.current, candidates_.accelerators[c.accelerator],
                                   c.replicas, c.cost, QueueModel::calibrated) -
                          c.cost;
    const auto units = static_cast<double>(c.units());
    const bool has_steps = steps_[candidates_.type_of[c.accelerator]].free > 0;
    add(c, place,
        change + (has_steps ? 0 : units * purchase_of(*capacity, PurchaseKind::on_demand).cost));
    if (!server.spot || !capacity->purchases.contains(PurchaseKind::spot)) return;
    Candidate spot = c;
    spot.accelerator += static_cast<std::uint32_t>(candidates_.accelerators.size());
    add(spot, place, change + units * purchase_of(*capacity, PurchaseKind::spot).cost);
  }

  void add(Candidate candidate, std::size_t place, double value) {
    candidate.value = value;
    pooled_.all.push_back(candidate);
    places_.push_back(place);
  }

  const Candidates& candidates_;
  Candidates pooled_;
  std::vector<std::int64_t> limits_;         // by pool
  std::vector<Step> steps_;                  // by pool
  std::vector<const Capacity*> capacities_;  // by type; null: all of it costs the same
  std::vector<std::size_t> places_;          // in candidates_.all, by pooled candidate
};

}  // namespace

Optimum solve_by_purchase(const System& system, const Candidates& candidates,
                          const Execution& execution) {
  return Pools(system, candidates).solve(execution);
}

Bill bill_of(const Capacity& capacity, std::int64_t used, std::int64_t used_spot, double price,
             double spot_price) {
  Bill bill;
  const double on_demand_cost = purchase_of(capacity, PurchaseKind::on_demand).cost;
  std::int64_t left = used;
  double in_use = 0, added = 0;
  for (const auto& [kind, purchase] : capacity.purchases) {  // the reserved ones first
    PurchaseTotal& total = bill.kinds[kind];
    total.limit = purchase.count;
    total.used = kind == PurchaseKind::spot ? used_spot : std::min(left, purchase.count);
    const double used_cost = purchase.cost * static_cast<double>(total.used);
    total.cost = used_cost;
    if (kind == PurchaseKind::reserved) {
      total.cost = purchase.cost * static_cast<double>(purchase.count);
      bill.unused = total.cost - used_cost;
      total.shadow_price = price;
    }
    if (kind == PurchaseKind::spot) {
      bill.spot_cost = purchase.cost;
      total.shadow_price = spot_price;
    } else {
      left -= total.used;
      in_use += used_cost;
    }
    if (kind == PurchaseKind::on_demand) {
      added = used_cost;
      // Where some are reserved the price of a unit has what it costs on demand in it.
      const bool has_steps = purchase_of(capacity, PurchaseKind::reserved).count > 0;
      const double worth = price - (has_steps ? on_demand_cost : 0);
      total.shadow_price = worth > tolerance_of(price) ? worth : 0;
    }
    bill.cost += total.cost;
  }
  const auto units = static_cast<double>(std::max<std::int64_t>(1, used));
  bill.unit_cost = in_use / units;
  bill.unit_added = added / units;
  return bill;
}

}  // namespace berth::fleet
