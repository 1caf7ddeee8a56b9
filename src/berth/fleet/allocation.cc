// Operations on the allocation of one server.
#include <algorithm>
#include <cmath>

#include "berth/base/text.h"
#include "berth/fleet/sizing.h"
#include "berth/fleet/system_view.h"
#include "berth/fleet/value.h"

namespace berth::fleet {
namespace {

/// A server, and what its names stand for. Points into the system.
struct Known {
  const Server* server = nullptr;
  const Accelerator* accelerator = nullptr;
  const Performance* performance = nullptr;
  const Target* target = nullptr;
};

template <class T>
Result<const T*> find(const std::map<std::string, T>& entries, const std::string& name,
                      std::string_view what) {
  const auto found = entries.find(name);
  if (found == entries.end()) return fail(ErrorKind::not_found, "no {} '{}' is known", what, name);
  return &found->second;
}

Result<Known> look_up(const System& system, const std::string& server,
                      const std::string& accelerator) {
  Known known;
  BERTH_ASSIGN(known.server, find(system.servers, server, "server"));
  BERTH_ASSIGN(known.accelerator, find(system.accelerators, accelerator, "accelerator"));
  BERTH_ASSIGN(const Model* model, find(system.models, known.server->model, "model"));
  BERTH_ASSIGN(known.performance,
               find(model->accelerators, accelerator, "performance data on accelerator"));
  BERTH_ASSIGN(const ServiceClass* service_class,
               find(system.classes, class_of(*known.server), "service class"));
  BERTH_ASSIGN(known.target, find(service_class->targets, known.server->model, "target for model"));
  return known;
}

/// The one server as a fleet of its own, under a load and on some of the accelerators.
System alone(const System& system, const std::string& server, const Load& load,
             const std::string& accelerator) {
  System one = system;
  one.servers = {{server, system.servers.at(server)}};
  one.servers.at(server).current.load = load;
  if (accelerator.empty()) return one;
  one.servers.at(server).keep_accelerator = false;
  one.accelerators = {{accelerator, system.accelerators.at(accelerator)}};
  return one;
}

Result<Allocation> best_alone(const System& one) {
  const Candidates made = candidates(one, one.options.model);
  const auto& [name, server] = *one.servers.begin();
  const auto least = std::ranges::min_element(made.all, {}, &Candidate::value);
  if (least != made.all.end()) return allocation_of(one, made, server, *least, least->replicas);
  const Refusal refusal = made.refusals.empty() ? Refusal::no_performance : made.refusals.front();
  return fail(ErrorKind::impossible, "{}: {}", name, fleet::name(refusal));
}

/// Those of a mix; else the allocation itself, where it is one.
std::span<const Allocation> parts_of(const Allocation& allocation) {
  if (!allocation.parts.empty()) return allocation.parts;
  return {&allocation, allocation.accelerator.empty() ? std::size_t{0} : 1};
}

Result<bool> mix_saturated(const System& system, const std::string& server, const Allocation& mix,
                           const Load& load) {
  BERTH_TRY(check(load));
  double left_per_ms = 0;
  for (const Allocation& part : mix.parts) {
    BERTH_ASSIGN(const Known known, look_up(system, server, part.accelerator));
    const double rate = rate_per_ms(load, *known.target, system.options.model);
    if (rate == 0) return false;
    if (&part == mix.parts.data()) left_per_ms = rate * (1 - kRateRounding);
    const Demand demand = demand_of(load, *known.server, *known.target);
    const Sizing sizing = size_replica(demand, *known.performance, system.options.model);
    if (sizing.refusal != Refusal::none)
      return fail(ErrorKind::impossible, "{}: {}: {}", server, part.accelerator,
                  fleet::name(sizing.refusal));
    left_per_ms -= sizing.rate * part.replicas;
  }
  return left_per_ms > 0;
}

}  // namespace

Part part_of(const Allocation& current, std::string_view accelerator) {
  for (const Allocation& one : parts_of(current))
    if (one.accelerator == accelerator) return {true, one.replicas, 0, one.cost, 0};
  return {};
}

Allocation allocation_of(const System& system, const Candidates& candidates, const Server& server,
                         const Candidate& candidate, int replicas) {
  Allocation a;
  a.load = server.current.load;
  if (candidate.accelerator == Candidate::kNothing) return a;
  a.accelerator = candidates.accelerators[candidate.accelerator];
  a.replicas = replicas;
  a.batch = candidate.batch;
  a.cost = candidate.cost;
  a.itl_ms = candidate.itl_ms;
  a.ttft_ms = candidate.ttft_ms;
  a.utilisation = candidate.utilisation;
  // Best effort: fewer replicas, each under more than it can take.
  const bool is_partly = replicas != candidate.replicas;
  if (is_partly) a.cost = candidate.cost / candidate.replicas * replicas;
  const Performance& performance = system.models.at(server.model).accelerators.at(a.accelerator);
  const Target& target = system.classes.at(class_of(server)).targets.at(server.model);
  const double rate = rate_per_ms(a.load, target, candidates.model);
  if (rate == 0) return a;
  const Demand demand = demand_of(a.load, server, target);
  if (candidates.model == QueueModel::calibrated)
    a.percentiles = percentiles_at(demand, performance, a.batch, rate / replicas);
  if (!is_partly) return a;
  const Operation o = operation_at(demand, performance, a.batch, rate / replicas, candidates.model);
  a.itl_ms = o.itl_ms;
  a.ttft_ms = o.ttft_ms;
  a.utilisation = o.utilisation;
  return a;
}

Result<Allocation> create(const System& system, const std::string& server,
                          const std::string& accelerator) {
  BERTH_ASSIGN(const Known known, look_up(system, server, accelerator));
  return best_alone(alone(system, server, known.server->current.load, accelerator));
}

Result<Allocation> scale(const System& system, const std::string& server,
                         const Allocation& allocation, const Load& load) {
  BERTH_TRY(check(load));
  if (!allocation.parts.empty())
    return fail(ErrorKind::impossible, "{}: {} is a mix, which is planned anew, not scaled", server,
                in_words(allocation));
  BERTH_TRY(look_up(system, server, allocation.accelerator));
  return best_alone(alone(system, server, load, allocation.accelerator));
}

Result<Allocation> reallocate(const System& system, const std::string& server) {
  BERTH_ASSIGN(const Server* known, find(system.servers, server, "server"));
  return best_alone(alone(system, server, known->current.load, ""));
}

Result<bool> saturated(const System& system, const std::string& server,
                       const Allocation& allocation, double arrivals_per_min) {
  Load load = allocation.load;
  load.arrivals_per_min = arrivals_per_min;
  if (!allocation.parts.empty()) return mix_saturated(system, server, allocation, load);
  BERTH_ASSIGN(const Allocation needed, scale(system, server, allocation, load));
  return needed.replicas > allocation.replicas;
}

double transition_value(const Allocation& from, const Allocation& to, QueueModel model) {
  std::vector<Part> parts;
  for (const Allocation& one : parts_of(to)) {
    parts.push_back(part_of(from, one.accelerator));
    parts.back().replicas = one.replicas;
    parts.back().cost = one.cost;
  }
  return value_of(from, parts, model);
}

std::string in_words(const Allocation& allocation) {
  std::vector<std::string> parts;
  for (const Allocation& one : parts_of(allocation))
    parts.push_back(fmt::format("{} × {}", one.replicas, one.accelerator));
  return join(parts, " + ");
}

Difference difference(const Allocation& from, const Allocation& to) {
  const auto accelerators_of = [](const Allocation& allocation) {
    std::vector<std::string> names;
    for (const Allocation& one : parts_of(allocation)) names.push_back(one.accelerator);
    return join(names, " + ");
  };
  return {accelerators_of(from), accelerators_of(to), to.replicas - from.replicas,
          to.cost - from.cost};
}

}  // namespace berth::fleet
