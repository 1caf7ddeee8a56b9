#include "berth/api/planner.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "berth/api/planner_calls.h"

namespace berth::api {

namespace {

using Answer = Result<Json> (*)(Planner&, const Words&, const std::string&);
using SolvingAnswer = Result<std::string> (*)(Planner&, const Words&, const std::string&,
                                              const Solving&);

struct PlannerRoute {
  std::variant<Answer, SolvingAnswer> answer;
  std::string_view method, path;
  Role role;
  std::string_view summary, reply, body = "";  // the schemas of what it answers and is sent

  Call call() const {
    const bool is_own = path.starts_with("/v1/");
    return {method, path, role, is_own ? "fleet" : "reference", summary, reply, body};
  }
};

struct PlannerRoutes {
  using C = Calls;
  using enum Role;
  static constexpr PlannerRoute kAll[] = {
      {C::set_all<C::Accelerators>, "POST", "/setAccelerators", control,
       "replace accelerators by name", "fleet", "fleet"},
      {C::put_one<C::Accelerators>, "POST", "/addAccelerator", control,
       "add or replace one accelerator", "fleet.accelerator", "fleet.accelerator"},
      {C::get_accelerators, "GET", "/getAccelerators", read, "all accelerators, as a bare list",
       "Accelerators"},
      {C::get_one<C::Accelerators>, "GET", "/getAccelerator/{name}", read, "one accelerator",
       "fleet.accelerator"},
      {C::remove<C::Accelerators>, "GET", "/removeAccelerator/{name}", control,
       "remove one accelerator and return it", "fleet.accelerator"},
      {C::set_all<C::Capacities>, "POST", "/setCapacities", control, "replace capacities by name",
       "fleet", "fleet"},
      {C::put_one<C::Capacities>, "POST", "/setCapacity", control,
       "add or replace the capacity of one type", "fleet.capacity", "fleet.capacity"},
      {C::get_all<C::Capacities>, "GET", "/getCapacities", read, "all capacities", "fleet"},
      {C::get_one<C::Capacities>, "GET", "/getCapacity/{type}", read, "the capacity of one type",
       "fleet.capacity"},
      {C::remove<C::Capacities>, "GET", "/removeCapacity/{type}", control,
       "remove the capacity of one type and return it", "fleet.capacity"},
      {C::set_models, "POST", "/setModels", control, "replace models by name", "fleet", "fleet"},
      {C::model_names, "GET", "/getModels", read, "the names of all models", "Names"},
      {C::get_model, "GET", "/getModel/{name}", read,
       "one model, with its performance on each accelerator", "fleet"},
      {C::add_model, "GET", "/addModel/{name}", control, "add a model without performance data",
       "Name"},
      {C::remove_model, "GET", "/removeModel/{name}", control,
       "remove one model and return its name", "Name"},
      {C::set_all<C::Classes>, "POST", "/setServiceClasses", control,
       "replace service classes by name", "fleet", "fleet"},
      {C::add_targets, "POST", "/addServiceClassModelTargets", control,
       "add or replace targets of a class", "fleet.class", "fleet.class"},
      {C::get_all<C::Classes>, "GET", "/getServiceClasses", read, "all service classes", "fleet"},
      {C::get_one<C::Classes>, "GET", "/getServiceClass/{name}", read, "one service class",
       "fleet.class"},
      {C::add_class, "GET", "/addServiceClass/{name}/{priority}", control,
       "add or replace a service class without targets", "fleet.class"},
      {C::remove<C::Classes>, "GET", "/removeServiceClass/{name}", control,
       "remove one service class and return it", "fleet.class"},
      {C::get_part<C::target_of>, "GET", "/getServiceClassModelTarget/{class}/{model}", read,
       "the targets of one class for one model", "fleet.target"},
      {C::remove_target, "GET", "/removeServiceClassModelTarget/{class}/{model}", control,
       "remove the targets of one class for one model and return them", "fleet.target"},
      {C::set_all<C::Servers>, "POST", "/setServers", control, "replace servers by name", "fleet",
       "fleet"},
      {C::put_one<C::Servers>, "POST", "/addServer", control, "add or replace one server",
       "fleet.server", "fleet.server"},
      {C::get_all<C::Servers>, "GET", "/getServers", read, "all servers", "fleet"},
      {C::get_one<C::Servers>, "GET", "/getServer/{name}", read, "one server", "fleet.server"},
      {C::remove<C::Servers>, "GET", "/removeServer/{name}", control,
       "remove one server and return it", "fleet.server"},
      {C::add_performance, "POST", "/addModelAcceleratorPerf", control,
       "add or replace the performance of one model on one accelerator", "fleet.model",
       "fleet.model"},
      {C::get_part<C::performance_of>, "GET", "/getModelAcceleratorPerf/{model}/{accelerator}",
       read, "the performance of one model on one accelerator", "fleet.model"},
      {C::remove_performance, "GET", "/removeModelAcceleratorPerf/{model}/{accelerator}", control,
       "remove the performance of one model on one accelerator and return it", "fleet.model"},
      {C::optimize_all, "POST", "/optimize", control,
       "plan the fleet; 404 if a server gets no allocation", "Plan", "Optimizer"},
      {C::optimize_one, "POST", "/optimizeOne", control,
       "replace the fleet and plan it; 404 if a server gets no allocation", "Plan", "fleet"},
      {C::apply_allocation, "GET", "/applyAllocation", control,
       "make the desired allocation of each server its current one", "Name"},
      {C::plan_body, "POST", "/v1/plan", read, "plan the fleet in the body without storing it",
       "Plan", "fleet"},
      {C::optimize, "POST", "/v1/optimize", control, "plan the server's fleet", "Plan",
       "Optimizer"},
      {C::size, "GET", "/v1/servers/{name}/size", read,
       "one server as it is, sized on each accelerator", "Size"},
      {C::size, "POST", "/v1/servers/{name}/size", read,
       "one server as it would be, sized on each accelerator", "Size", "SizeQuestion"},
      {C::reallocate, "POST", "/v1/servers/{name}/reallocate", control,
       "make the best candidate the desired allocation of one server", "Candidate", "SizeQuestion"},
      {C::apply_one, "POST", "/v1/servers/{name}/apply", control,
       "make the desired allocation of one server its current one", "fleet.server"},
      {C::get_all<C::Accelerators>, "GET", "/v1/accelerators", read, "all accelerators", "fleet"},
      {C::get_all<C::Models>, "GET", "/v1/models", read, "all models", "fleet"},
      {C::get_system, "GET", "/v1/system", read, "the server's fleet, as one document", "fleet"},
      {C::health, "GET", "/v1/health", none, "whether the server is up", "Health"},
  };
};

/// Whether clients of the reference can read the answer with their types.
bool has_their_types(std::string_view path) {
  return !path.starts_with("/v1/") || path.starts_with("/v1/servers/");
}

/// They read these as integers, and refuse a whole answer for a fraction.
constexpr std::string_view kWhole[] = {"memSize",  "memBW",       "idle",        "full",
                                       "midPower", "avgInTokens", "avgOutTokens"};

void round_whole(Json& json) {
  for (auto& [key, value] : json.items()) {
    if (value.is_structured())
      round_whole(value);
    else if (value.is_number_float() && std::ranges::find(kWhole, key) != std::end(kWhole))
      value = std::llround(value.get<double>());
  }
}

}  // namespace

std::vector<Route> Planner::routes() {
  std::vector<Route> routes;
  for (const PlannerRoute& route : PlannerRoutes::kAll)
    routes.push_back({route.call(), [this, &route](const Request& request) {
                        const bool is_rounded = has_their_types(route.path);
                        if (const auto* solves = std::get_if<SolvingAnswer>(&route.answer)) {
                          fleet::Execution means = means_;
                          means.stop = [&request] {
                            return is_abandoned(request) || (request.is_late && request.is_late());
                          };
                          auto text =
                              (*solves)(*this, request.parts, request.body, {means, request});
                          if (!text) return failed(text.error());
                          if (!is_rounded) return Reply{200, *std::move(text)};
                          Json json = *parse_json(*text);
                          round_whole(json);
                          return Reply{200, dump(json)};
                        }
                        auto json =
                            std::get<Answer>(route.answer)(*this, request.parts, request.body);
                        if (!json) return failed(json.error());
                        if (is_rounded) round_whole(*json);
                        return Reply{200, dump(*json)};
                      }});
  return routes;
}

System Planner::system() const {
  const std::shared_lock lock(mutex_);
  return system_;
}

}  // namespace berth::api
