#include "berth/render/fleets/candidates.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/render/fleets/fleet_cells.h"
#include "berth/render/table.h"

namespace berth::render {
namespace {

/// The units of the type that the server may use.
std::int64_t available(const fleet::Capacity& capacity, const fleet::Server& server) {
  const auto spot = capacity.purchases.find(fleet::PurchaseKind::spot);
  const bool excludes_spot = spot != capacity.purchases.end() && !server.spot;
  return capacity.count - (excludes_spot ? spot->second.count : 0);
}

std::string why_text(const fleet::System& system, const fleet::Server& server,
                     const std::string& type, const fleet::Candidate& candidate) {
  const std::string usable = fmt::format("usable; {} binds", fleet::name(candidate.binding));
  if (system.options.solver == fleet::Solver::unlimited) return usable;
  const auto capacity = system.capacities.find(type);
  if (capacity == system.capacities.end())
    return fmt::format("no capacity: no count for type {}", clip(type));
  const auto units = available(capacity->second, server);
  const std::string_view kind = units < capacity->second.count ? " without spot" : "";
  if (candidate.units() <= units) return usable;
  if (units == 0) return fmt::format("no capacity: {} has 0 units{}", clip(type), kind);
  return fmt::format("needs {} units of {}; {} available{}", candidate.units(), clip(type), units,
                     kind);
}

}  // namespace

std::string candidates_text(const fleet::System& system, const fleet::Candidates& all,
                            const View& view) {
  Table table({"server",
               "accelerator",
               "replicas",
               {"batch", 4},
               {"req/min each", 3},
               "cost",
               {"ITL ms", 1},
               {"TTFT ms", 2},
               {"W", 6},
               {"value", 5},
               {"why", Column::kCut}});
  for (std::size_t s = 0; s < all.servers.size(); ++s) {
    const auto of = all.of(s);
    const fleet::Server& server = system.servers.at(all.servers[s]);
    for (std::size_t a = 0; a < all.accelerators.size(); ++a) {
      const auto c = std::ranges::find(of, a, &fleet::Candidate::accelerator);
      const auto refusal = all.refusals[s * all.accelerators.size() + a];
      if (c == of.end())
        table.add({all.servers[s], all.accelerators[a], "-", "-", "-", "-", "-", "-", "-", "-",
                   std::string(fleet::name(refusal))});
      else
        table.add({all.servers[s], all.accelerators[a], fmt::format("{}", c->replicas),
                   fmt::format("{}", c->batch), figure(60 * c->rate_per_s, 1), figure(c->cost),
                   figure(c->itl_ms), figure(c->ttft_ms), watts_text(c->watts), figure(c->value),
                   why_text(system, server, all.types[all.type_of[a]], *c)});
    }
  }
  return to_text(table, view);
}

}  // namespace berth::render
