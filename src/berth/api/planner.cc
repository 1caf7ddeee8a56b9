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
  Call call;
  std::variant<Answer, SolvingAnswer> answer;
};

constexpr std::string_view kFleet = "fleet", kFamiliar = "reference";
constexpr PlannerRoute kRoutes[] = {
    {{"POST", "/setAccelerators", Role::control, kFamiliar, "replace accelerators by name", "fleet",
      "fleet"},
     Calls::set_all<Calls::Accelerators>},
    {{"POST", "/addAccelerator", Role::control, kFamiliar, "add or replace one accelerator",
      "fleet.accelerator", "fleet.accelerator"},
     Calls::put_one<Calls::Accelerators>},
    {{"GET", "/getAccelerators", Role::read, kFamiliar, "all accelerators, as a bare list",
      "Accelerators"},
     Calls::get_accelerators},
    {{"GET", "/getAccelerator/{name}", Role::read, kFamiliar, "one accelerator",
      "fleet.accelerator"},
     Calls::get_one<Calls::Accelerators>},
    {{"GET", "/removeAccelerator/{name}", Role::control, kFamiliar,
      "remove one accelerator and return it", "fleet.accelerator"},
     Calls::remove<Calls::Accelerators>},
    {{"POST", "/setCapacities", Role::control, kFamiliar, "replace capacities by name", "fleet",
      "fleet"},
     Calls::set_all<Calls::Capacities>},
    {{"POST", "/setCapacity", Role::control, kFamiliar, "add or replace the capacity of one type",
      "fleet.capacity", "fleet.capacity"},
     Calls::put_one<Calls::Capacities>},
    {{"GET", "/getCapacities", Role::read, kFamiliar, "all capacities", "fleet"},
     Calls::get_all<Calls::Capacities>},
    {{"GET", "/getCapacity/{type}", Role::read, kFamiliar, "the capacity of one type",
      "fleet.capacity"},
     Calls::get_one<Calls::Capacities>},
    {{"GET", "/removeCapacity/{type}", Role::control, kFamiliar,
      "remove the capacity of one type and return it", "fleet.capacity"},
     Calls::remove<Calls::Capacities>},
    {{"POST", "/setModels", Role::control, kFamiliar, "replace models by name", "fleet", "fleet"},
     Calls::set_models},
    {{"GET", "/getModels", Role::read, kFamiliar, "the names of all models", "Names"},
     Calls::model_names},
    {{"GET", "/getModel/{name}", Role::read, kFamiliar,
      "one model, with its performance on each accelerator", "fleet"},
     Calls::get_model},
    {{"GET", "/addModel/{name}", Role::control, kFamiliar, "add a model without performance data",
      "Name"},
     Calls::add_model},
    {{"GET", "/removeModel/{name}", Role::control, kFamiliar,
      "remove one model and return its name", "Name"},
     Calls::remove_model},
    {{"POST", "/setServiceClasses", Role::control, kFamiliar, "replace service classes by name",
      "fleet", "fleet"},
     Calls::set_all<Calls::Classes>},
    {{"POST", "/addServiceClassModelTargets", Role::control, kFamiliar,
      "add or replace targets of a class", "fleet.class", "fleet.class"},
     Calls::add_targets},
    {{"GET", "/getServiceClasses", Role::read, kFamiliar, "all service classes", "fleet"},
     Calls::get_all<Calls::Classes>},
    {{"GET", "/getServiceClass/{name}", Role::read, kFamiliar, "one service class", "fleet.class"},
     Calls::get_one<Calls::Classes>},
    {{"GET", "/addServiceClass/{name}/{priority}", Role::control, kFamiliar,
      "add or replace a service class without targets", "fleet.class"},
     Calls::add_class},
    {{"GET", "/removeServiceClass/{name}", Role::control, kFamiliar,
      "remove one service class and return it", "fleet.class"},
     Calls::remove<Calls::Classes>},
    {{"GET", "/getServiceClassModelTarget/{class}/{model}", Role::read, kFamiliar,
      "the targets of one class for one model", "fleet.target"},
     Calls::get_target},
    {{"GET", "/removeServiceClassModelTarget/{class}/{model}", Role::control, kFamiliar,
      "remove the targets of one class for one model and return them", "fleet.target"},
     Calls::remove_target},
    {{"POST", "/setServers", Role::control, kFamiliar, "replace servers by name", "fleet", "fleet"},
     Calls::set_all<Calls::Servers>},
    {{"POST", "/addServer", Role::control, kFamiliar, "add or replace one server", "fleet.server",
      "fleet.server"},
     Calls::put_one<Calls::Servers>},
    {{"GET", "/getServers", Role::read, kFamiliar, "all servers", "fleet"},
     Calls::get_all<Calls::Servers>},
    {{"GET", "/getServer/{name}", Role::read, kFamiliar, "one server", "fleet.server"},
     Calls::get_one<Calls::Servers>},
    {{"GET", "/removeServer/{name}", Role::control, kFamiliar, "remove one server and return it",
      "fleet.server"},
     Calls::remove<Calls::Servers>},
    {{"POST", "/addModelAcceleratorPerf", Role::control, kFamiliar,
      "add or replace the performance of one model on one accelerator", "fleet.model",
      "fleet.model"},
     Calls::add_performance},
    {{"GET", "/getModelAcceleratorPerf/{model}/{accelerator}", Role::read, kFamiliar,
      "the performance of one model on one accelerator", "fleet.model"},
     Calls::get_performance},
    {{"GET", "/removeModelAcceleratorPerf/{model}/{accelerator}", Role::control, kFamiliar,
      "remove the performance of one model on one accelerator and return it", "fleet.model"},
     Calls::remove_performance},
    {{"POST", "/optimize", Role::control, kFamiliar,
      "plan the fleet; 404 if a server gets no allocation", "Plan", "Optimizer"},
     Calls::optimize_all},
    {{"POST", "/optimizeOne", Role::control, kFamiliar,
      "replace the fleet and plan it; 404 if a server gets no allocation", "Plan", "fleet"},
     Calls::optimize_one},
    {{"GET", "/applyAllocation", Role::control, kFamiliar,
      "make the desired allocation of each server its current one", "Name"},
     Calls::apply_allocation},
    {{"POST", "/v1/plan", Role::read, kFleet, "plan the fleet in the body without storing it",
      "Plan", "fleet"},
     Calls::plan_body},
    {{"POST", "/v1/optimize", Role::control, kFleet, "plan the server's fleet", "Plan",
      "Optimizer"},
     Calls::optimize},
    {{"GET", "/v1/servers/{name}/size", Role::read, kFleet,
      "one server as it is, sized on each accelerator", "Size"},
     Calls::size},
    {{"POST", "/v1/servers/{name}/size", Role::read, kFleet,
      "one server as it would be, sized on each accelerator", "Size", "SizeQuestion"},
     Calls::size},
    {{"POST", "/v1/servers/{name}/reallocate", Role::control, kFleet,
      "make the best candidate the desired allocation of one server", "Candidate", "SizeQuestion"},
     Calls::reallocate},
    {{"POST", "/v1/servers/{name}/apply", Role::control, kFleet,
      "make the desired allocation of one server its current one", "fleet.server"},
     Calls::apply_one},
    {{"GET", "/v1/accelerators", Role::read, kFleet, "all accelerators", "fleet"},
     Calls::get_all<Calls::Accelerators>},
    {{"GET", "/v1/models", Role::read, kFleet, "all models", "fleet"},
     Calls::get_all<Calls::Models>},
    {{"GET", "/v1/system", Role::read, kFleet, "the server's fleet, as one document", "fleet"},
     Calls::get_system},
    {{"GET", "/v1/health", Role::none, kFleet, "whether the server is up", "Health"},
     Calls::health},
};

/// Whether clients of the reference can read the answer with their types.
bool has_their_types(const Call& call) {
  return !call.path.starts_with("/v1/") || call.path.starts_with("/v1/servers/");
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
  for (const PlannerRoute& route : kRoutes)
    routes.push_back({route.call, [this, &route](const Request& request) {
                        const bool is_rounded = has_their_types(route.call);
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
