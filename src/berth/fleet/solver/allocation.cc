// Operations on the allocation of one server.

#include "berth/base/text.h"
#include "berth/fleet/model/system_view.h"
#include "berth/fleet/model/value.h"
#include "berth/fleet/queueing/thinning.h"
#include "berth/fleet/solver/server_size.h"

namespace berth::fleet {
namespace {

/// not_found: something is missing that sizing the server on the accelerator takes.
Status look_up(const System& system, const std::string& server, const std::string& accelerator) {
  BERTH_ASSIGN(const Server* known, find(system.servers, server, "server"));
  BERTH_TRY(find(system.accelerators, accelerator, "accelerator"));
  BERTH_ASSIGN(const Model* model, find(system.models, known->model, "model"));
  BERTH_TRY(find(model->accelerators, accelerator, "performance data on accelerator"));
  BERTH_ASSIGN(const ServiceClass* service_class,
               find(system.classes, class_of(*known), "service class"));
  BERTH_TRY(find(service_class->targets, known->model, "target for model"));
  return {};
}

/// The system with no server but this one, which is to have the allocation or the load.
System alone(const System& system, const std::string& name, const Server& server) {
  return {.accelerators = system.accelerators,
          .models = system.models,
          .classes = system.classes,
          .servers = {{name, server}},
          .options = system.options};
}

Result<Allocation> best_of(const ServerSize& size) {
  if (!size.best) return fail(ErrorKind::impossible, "{}: {}", size.name, why_no_best(size));
  return size.accelerators.at(*size.best).allocation;
}

}  // namespace

std::span<const Allocation> parts_of(const Allocation& allocation) {
  if (!allocation.parts.empty()) return allocation.parts;
  return {&allocation, allocation.accelerator.empty() ? std::size_t{0} : 1};
}

Part part_of(const Allocation& current, std::string_view accelerator, Role role) {
  for (const Allocation& one : parts_of(current))
    if (one.accelerator == accelerator && one.role == role)
      return {true, one.replicas, 0, one.cost, 0};
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
  const Demand demand = thinned(demand_of(a.load, server, target), 1.0 / replicas);
  if (is_partly)
    set_figures(a, demand, performance, rate / replicas, candidates.model);
  else if (candidates.model == QueueModel::calibrated && target.has_percentiles())
    a.percentiles = percentiles_at(demand, performance, a.batch, rate / replicas);
  return a;
}

Result<Allocation> create(const System& system, const std::string& server,
                          const std::string& accelerator, const Execution& execution) {
  BERTH_TRY(look_up(system, server, accelerator));
  BERTH_ASSIGN(const ServerSize size, size_server(system, server, {accelerator}, execution));
  return best_of(size);
}

Result<Allocation> scale(const System& system, const std::string& server,
                         const Allocation& allocation, const Load& load,
                         const Execution& execution) {
  BERTH_TRY(check(load));
  if (!allocation.parts.empty())
    return fail(ErrorKind::impossible, "{}: {} is a {}, which is planned again, not scaled", server,
                in_words(allocation), allocation.is_split() ? "split" : "mix");
  BERTH_TRY(look_up(system, server, allocation.accelerator));
  Server loaded = system.servers.at(server);
  loaded.current.load = load;
  return create(alone(system, server, loaded), server, allocation.accelerator, execution);
}

Result<Allocation> reallocate(const System& system, const std::string& server,
                              const Execution& execution) {
  BERTH_ASSIGN(const ServerSize size, size_server(system, server, {}, execution));
  return best_of(size);
}

Result<bool> saturated(const System& system, const std::string& server,
                       const Allocation& allocation, double arrivals_per_min,
                       const Execution& execution) {
  BERTH_ASSIGN(const Server* known, find(system.servers, server, "server"));
  Server having = *known;
  having.current = allocation;
  having.current.load.arrivals_per_min = arrivals_per_min;
  BERTH_TRY(check(having.current));
  for (const Allocation& part : parts_of(allocation))
    BERTH_TRY(look_up(system, server, part.accelerator));
  BERTH_ASSIGN(const ServerSize size, size_server(alone(system, server, having), server,
                                                  {allocation.accelerator}, execution));
  return size.current.saturated.value_or(true);
}

double transition_value(const Allocation& from, const Allocation& to, QueueModel model) {
  std::vector<Part> parts;
  for (const Allocation& one : parts_of(to)) {
    parts.push_back(part_of(from, one.accelerator, one.role));
    parts.back().replicas = one.replicas;
    parts.back().cost = one.cost;
  }
  return value_of(from, parts, model);
}

std::string with_role(const std::string& accelerator, Role role) {
  return role == Role::whole ? accelerator : fmt::format("{} {}", accelerator, name(role));
}

std::string in_words(const Allocation& allocation) {
  std::vector<std::string> parts;
  for (const Allocation& one : parts_of(allocation))
    parts.push_back(fmt::format("{} × {}", one.replicas, with_role(one.accelerator, one.role)));
  return join(parts, " + ");
}

Difference difference(const Allocation& from, const Allocation& to) {
  const auto accelerators_of = [](const Allocation& allocation) {
    std::vector<std::string> names;
    for (const Allocation& one : parts_of(allocation))
      names.push_back(with_role(one.accelerator, one.role));
    return join(names, " + ");
  };
  return {accelerators_of(from), accelerators_of(to), to.replicas - from.replicas,
          to.cost - from.cost};
}

}  // namespace berth::fleet
