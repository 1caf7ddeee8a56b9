#include "berth/fleet/solver/splits.h"

#include <algorithm>
#include <tuple>

#include "berth/fleet/model/system_view.h"
#include "berth/fleet/model/value.h"
#include "berth/fleet/queueing/thinning.h"

namespace berth::fleet {
namespace {

/// A split and what it takes of its types; of one type alone, nothing of the second.
struct SplitUses {
  Mix split;
  std::array<std::uint32_t, 2> types{};
  std::array<std::int64_t, 2> units{};

  std::int64_t units_of(std::uint32_t type) const {
    return (types[0] == type ? units[0] : 0) + (types[1] == type ? units[1] : 0);
  }
  bool takes_no_more_than(const SplitUses& other) const {
    return units_of(types[0]) <= other.units_of(types[0]) &&
           units_of(types[1]) <= other.units_of(types[1]);
  }
};

double cost_of(const Candidate& pool, std::int32_t replicas) {
  return pool.cost / pool.replicas * replicas;
}

SplitUses uses_of(const Candidates& candidates, const Allocation& current,
                  const std::vector<Candidate>& pools, const Mix& split) {
  SplitUses uses{split};
  std::array<Part, 2> parts;
  for (std::size_t i = 0; i < 2; ++i) {
    const Candidate& c = pools[split.places[i]];
    parts[i] = part_of(current, candidates.accelerators[c.accelerator], c.role);
    parts[i].replicas = split.replicas[i];
    parts[i].cost = cost_of(c, split.replicas[i]);
    uses.types[i] = candidates.type_of[c.accelerator];
    uses.units[i] = std::int64_t{c.units_per_replica} * split.replicas[i];
  }
  uses.split.value = value_of(current, parts, candidates.model);
  return uses;
}

}  // namespace

std::vector<Mix> splits_of(const System& system, const Candidates& candidates, std::size_t server,
                           std::span<const std::int64_t> limits) {
  if (candidates.pools.empty()) return {};
  const Server& known = system.servers.at(candidates.servers[server]);
  const std::vector<Candidate>& pools = candidates.pools[server];
  std::vector<SplitUses> all;
  for (std::uint32_t p = 0; p < pools.size(); ++p)
    for (std::uint32_t d = 0; d < pools.size(); ++d) {
      if (pools[p].role != Role::prefill || pools[d].role != Role::decode) continue;
      const std::int64_t beyond = std::max<std::int64_t>(
          0, std::int64_t{known.min_replicas} - pools[p].replicas - pools[d].replicas);
      const std::int64_t steps = std::min<std::int64_t>(beyond, kMostSplits);
      for (std::int64_t step = 0; step <= steps; ++step) {
        const auto more = static_cast<std::int32_t>(steps == 0 ? 0 : beyond * step / steps);
        SplitUses found = uses_of(candidates, known.current, pools,
                                  {{p, d},
                                   {pools[p].replicas + more,
                                    pools[d].replicas + static_cast<std::int32_t>(beyond) - more},
                                   0,
                                   true});
        if (std::ranges::all_of(found.types,
                                [&](auto type) { return found.units_of(type) <= limits[type]; }))
          all.push_back(found);
      }
    }
  // A candidate stands for a split of one type here.
  std::vector<SplitUses> better;
  for (const Candidate& c : candidates.of(server))
    if (c.accelerator != Candidate::kNothing) {
      const std::uint32_t type = candidates.type_of[c.accelerator];
      better.push_back({{{}, {}, c.value}, {type, type}, {c.units(), 0}});
    }
  const auto rank = [](const SplitUses& f) {
    return std::tuple(f.split.value, f.units, f.split.places, f.split.replicas);
  };
  std::ranges::sort(all, std::less{}, rank);
  std::vector<Mix> kept;
  for (const SplitUses& found : all) {
    if (std::ranges::any_of(better, [&](const SplitUses& other) {
          return other.split.value <= found.split.value && other.takes_no_more_than(found);
        }))
      continue;
    better.push_back(found);
    kept.push_back(found.split);
  }
  return kept;
}

Allocation allocation_of_split(const System& system, const Candidates& candidates,
                               std::size_t server, const Mix& split) {
  const Server& known = system.servers.at(candidates.servers[server]);
  const Load& load = known.current.load;
  const Target target = target_of(system, known);
  const Demand whole_demand = demand_of(load, known, target);
  const double rate = rate_per_ms(load, target, candidates.model);
  Allocation whole;
  double used = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const Candidate& pool = candidates.pools[server][split.places[i]];
    Allocation part;
    part.accelerator = candidates.accelerators[pool.accelerator];
    part.role = pool.role;
    part.replicas = split.replicas[i];
    part.batch = pool.batch;
    part.cost = cost_of(pool, part.replicas);
    part.load = load;
    const double each = 1.0 / part.replicas;
    const Demand demand = demand_of(thinned(whole_demand, each), pool.role);
    const Performance& performance =
        system.models.at(known.model).accelerators.at(part.accelerator);
    set_figures(part, demand, performance, rate * each, candidates.model);
    if (target.has_percentiles())
      part.percentiles =
          targets_of(percentiles_at(demand, performance, part.batch, rate * each), pool.role);
    whole.replicas += part.replicas;
    whole.cost += part.cost;
    whole.itl_ms += part.itl_ms;
    whole.ttft_ms += part.ttft_ms;
    used += part.utilisation * part.replicas;
    if (part.percentiles && !whole.percentiles)
      whole.percentiles = part.percentiles;
    else if (part.percentiles)
      whole.percentiles->itl_ms = part.percentiles->itl_ms;
    whole.parts.push_back(std::move(part));
  }
  whole.utilisation = used / whole.replicas;
  whole.accelerator = whole.parts[1].accelerator;
  whole.batch = whole.parts[1].batch;
  whole.load = load;
  return whole;
}

}  // namespace berth::fleet
