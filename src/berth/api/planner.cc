#include "berth/api/planner.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "berth/base/json.h"
#include "berth/base/text.h"
#include "berth/fleet/server_size.h"

namespace berth::api {

using fleet::System;
using Words = std::vector<std::string>;  // of the path behind the call's name

/// What the paths stand for. Each call gives the JSON of its reply.
struct Calls {
  // ---- Documents. A body is a part of a fleet document; it is read as one, so that its errors
  // name the same paths.

  static Result<System> read(const Json& json) {
    const fleet::Document document{"body", dump(json)};
    BERTH_ASSIGN(auto reading, fleet::read_documents(std::span(&document, 1)));
    return std::move(reading.system);
  }
  static Result<System> read_body(const std::string& body) {
    BERTH_ASSIGN(const Json json, parse_json(body));
    return read(json);
  }
  /// The body is one entry of the list `key`.
  static Result<System> read_entry(const std::string& body, const char* key) {
    BERTH_ASSIGN(const Json json, parse_json(body));
    return read(Json{{key, Json::array({json})}});
  }

  /// What a fleet document would say under data.list, or the only entry of that list.
  static Json written(const System& part, const char* data, const char* list) {
    return Json{{list, parse_json(fleet::write_document(part))->at(data).at(list)}};
  }
  static Json only(const System& part, const char* data, const char* list) {
    return written(part, data, list).at(list).at(0);
  }

  template <class T>
  static System with(std::map<std::string, T> System::* entries, std::map<std::string, T> part) {
    System system;
    system.*entries = std::move(part);
    return system;
  }

  // ---- Calls on any kind of entries.

  // Where a kind of entries stands: here, and in a document.
  struct Accelerators {
    static constexpr auto kEntries = &System::accelerators;
    static constexpr auto kData = "acceleratorData", kList = "accelerators";
  };
  struct Capacities {
    static constexpr auto kEntries = &System::capacities;
    static constexpr auto kData = "capacityData", kList = "count";
  };
  struct Models {
    static constexpr auto kEntries = &System::models;
    static constexpr auto kData = "modelData", kList = "models";
  };
  struct Classes {
    static constexpr auto kEntries = &System::classes;
    static constexpr auto kData = "serviceClassData", kList = "serviceClasses";
  };
  struct Servers {
    static constexpr auto kEntries = &System::servers;
    static constexpr auto kData = "serverData", kList = "servers";
  };

  template <class Kind>
  static Result<Json> get_all(Planner& planner, const Words&, const std::string&) {
    const std::shared_lock lock(planner.mutex_);
    return written(with(Kind::kEntries, planner.system_.*Kind::kEntries), Kind::kData, Kind::kList);
  }
  template <class Kind>
  static Result<Json> one_of(const System& system, const std::string& name) {
    BERTH_ASSIGN(auto entry, fleet::get(system.*Kind::kEntries, name));
    return only(with(Kind::kEntries, {{name, std::move(entry)}}), Kind::kData, Kind::kList);
  }
  template <class Kind>
  static Result<Json> get_one(Planner& planner, const Words& words, const std::string&) {
    const std::shared_lock lock(planner.mutex_);
    return one_of<Kind>(planner.system_, words.at(0));
  }
  /// Answers with what was removed.
  template <class Kind>
  static Result<Json> remove(Planner& planner, const Words& words, const std::string&) {
    const std::unique_lock lock(planner.mutex_);
    BERTH_ASSIGN(Json removed, one_of<Kind>(planner.system_, words.at(0)));
    BERTH_TRY(fleet::remove(planner.system_.*Kind::kEntries, words.at(0)));
    return removed;
  }
  /// Puts the entries of the body in place of those of their names; others stay. Answers with them.
  template <class Kind>
  static Result<Json> set_all(Planner& planner, const Words&, const std::string& body) {
    BERTH_ASSIGN(System part, read_body(body));
    Json answer = written(with(Kind::kEntries, part.*Kind::kEntries), Kind::kData, Kind::kList);
    const std::unique_lock lock(planner.mutex_);
    for (auto& [name, entry] : part.*Kind::kEntries)
      (planner.system_.*Kind::kEntries).insert_or_assign(name, std::move(entry));
    return answer;
  }
  /// The same with the one entry that the body is.
  template <class Kind>
  static Result<Json> put_one(Planner& planner, const Words&, const std::string& body) {
    BERTH_ASSIGN(System part, read_entry(body, Kind::kList));
    auto& [name, entry] = *(part.*Kind::kEntries).begin();
    BERTH_ASSIGN(Json answer, one_of<Kind>(part, name));
    const std::unique_lock lock(planner.mutex_);
    BERTH_TRY(fleet::put(planner.system_.*Kind::kEntries, name, std::move(entry)));
    return answer;
  }
  static Result<Json> get_accelerators(Planner& planner, const Words&, const std::string&) {
    BERTH_ASSIGN(Json all, get_all<Accelerators>(planner, {}, {}));
    return std::move(all.at(Accelerators::kList));
  }

  // ---- Models: their performance data are a list of their own in a document, with one entry for
  // each accelerator.

  static Json models_of(std::map<std::string, fleet::Model> models) {
    return written(with(&System::models, std::move(models)), Models::kData, Models::kList);
  }
  static void merge_models(System& system, const std::map<std::string, fleet::Model>& models) {
    for (const auto& [name, given] : models) {
      fleet::Model& model = system.models[name];
      for (const auto& [accelerator, performance] : given.accelerators)
        model.accelerators.insert_or_assign(accelerator, performance);
    }
  }
  static Result<Json> set_models(Planner& planner, const Words&, const std::string& body) {
    BERTH_ASSIGN(const System part, read_body(body));
    const std::unique_lock lock(planner.mutex_);
    merge_models(planner.system_, part.models);
    return models_of(part.models);
  }
  static Result<Json> model_names(Planner& planner, const Words&, const std::string&) {
    const std::shared_lock lock(planner.mutex_);
    Json names = Json::array();
    for (const auto& [name, model] : planner.system_.models) names.push_back(name);
    return names;
  }
  static Result<Json> get_model(Planner& planner, const Words& words, const std::string&) {
    const std::shared_lock lock(planner.mutex_);
    BERTH_ASSIGN(auto model, fleet::get(planner.system_.models, words.at(0)));
    return models_of({{words.at(0), std::move(model)}});
  }
  static Result<Json> add_model(Planner& planner, const Words& words, const std::string&) {
    const std::unique_lock lock(planner.mutex_);
    BERTH_TRY(fleet::put(planner.system_.models, words.at(0), fleet::Model{}));
    return Json(words.at(0));
  }
  static Result<Json> remove_model(Planner& planner, const Words& words, const std::string&) {
    const std::unique_lock lock(planner.mutex_);
    BERTH_TRY(fleet::remove(planner.system_.models, words.at(0)));
    return Json(words.at(0));
  }
  static Result<Json> add_performance(Planner& planner, const Words&, const std::string& body) {
    BERTH_ASSIGN(const System part, read_entry(body, "models"));
    const std::unique_lock lock(planner.mutex_);
    merge_models(planner.system_, part.models);
    return only(part, Models::kData, Models::kList);
  }
  static Result<Json> performance_of(const System& system, const Words& words) {
    BERTH_ASSIGN(auto model, fleet::get(system.models, words.at(0)));
    BERTH_ASSIGN(auto performance, fleet::get(model.accelerators, words.at(1)));
    model.accelerators = {{words.at(1), performance}};
    return only(with(&System::models, {{words.at(0), std::move(model)}}), Models::kData,
                Models::kList);
  }
  static Result<Json> get_performance(Planner& planner, const Words& words, const std::string&) {
    const std::shared_lock lock(planner.mutex_);
    return performance_of(planner.system_, words);
  }
  static Result<Json> remove_performance(Planner& planner, const Words& words, const std::string&) {
    const std::unique_lock lock(planner.mutex_);
    BERTH_ASSIGN(Json removed, performance_of(planner.system_, words));
    planner.system_.models.at(words.at(0)).accelerators.erase(words.at(1));
    return removed;
  }

  // ---- Service classes and their targets.

  static Result<Json> add_class(Planner& planner, const Words& words, const std::string&) {
    BERTH_ASSIGN(const Json priority, parse_json(words.at(1)));
    return put_one<Classes>(planner, {}, dump(Json{{"name", words.at(0)}, {"priority", priority}}));
  }
  static Result<Json> add_targets(Planner& planner, const Words&, const std::string& body) {
    BERTH_ASSIGN(const System part, read_entry(body, "serviceClasses"));
    const auto& [name, given] = *part.classes.begin();
    const std::unique_lock lock(planner.mutex_);
    BERTH_ASSIGN(auto known, fleet::get(planner.system_.classes, name));
    for (const auto& [model, target] : given.targets) known.targets.insert_or_assign(model, target);
    BERTH_TRY(fleet::put(planner.system_.classes, name, std::move(known)));
    return one_of<Classes>(planner.system_, name);
  }
  static Result<Json> target_of(const System& system, const Words& words) {
    BERTH_ASSIGN(auto known, fleet::get(system.classes, words.at(0)));
    BERTH_ASSIGN(auto target, fleet::get(known.targets, words.at(1)));
    known.targets = {{words.at(1), target}};
    const System part = with(&System::classes, {{words.at(0), std::move(known)}});
    return only(part, Classes::kData, Classes::kList).at("modelTargets").at(0);
  }
  static Result<Json> get_target(Planner& planner, const Words& words, const std::string&) {
    const std::shared_lock lock(planner.mutex_);
    return target_of(planner.system_, words);
  }
  static Result<Json> remove_target(Planner& planner, const Words& words, const std::string&) {
    const std::unique_lock lock(planner.mutex_);
    BERTH_ASSIGN(Json removed, target_of(planner.system_, words));
    planner.system_.classes.at(words.at(0)).targets.erase(words.at(1));
    return removed;
  }

  // ---- Planning: on a copy, so that nobody waits for it.

  static Result<Json> solved(const System& system, const fleet::Execution& means,
                             fleet::Plan& plan) {
    BERTH_TRY(check(system));
    const auto candidates = fleet::candidates(system, system.options.model, means);
    plan = fleet::solve(system, candidates, system.options, means);
    return *parse_json(fleet::plan_json(plan, nullptr));
  }
  /// The body: the optimizer's options, or a document that holds them; none: those that are known.
  static Result<Json> optimize(Planner& planner, const Words&, const std::string& body) {
    System system = planner.system();
    if (!trim(body).empty()) {
      BERTH_ASSIGN(const Json json, parse_json(body));
      const bool whole =
          json.is_object() && (json.contains("optimizer") || json.contains("optimizerData"));
      BERTH_ASSIGN(const System part, read(whole ? json : Json{{"optimizer", json}}));
      system.options = part.options;
    }
    fleet::Plan plan;
    BERTH_ASSIGN(Json json, solved(system, planner.means_, plan));
    const std::unique_lock lock(planner.mutex_);
    planner.system_.options = system.options;
    desire(planner.system_, plan);
    return json;
  }
  static Result<Json> plan_body(Planner& planner, const Words&, const std::string& body) {
    BERTH_ASSIGN(const System system, read_body(body));
    fleet::Plan plan;
    return solved(system, planner.means_, plan);
  }
  static void desire(System& system, fleet::Plan& plan) {
    for (auto& [name, assignment] : plan.servers)  // of a server that changed meanwhile it is the
      if (const auto server = system.servers.find(name);  // wish that was asked for
          server != system.servers.end())
        server->second.desired = std::move(assignment.allocation);
  }

  // The familiar calls answer as the reference does: not found, where a server goes without.
  static Result<Json> feasible(Json plan) {
    std::vector<std::string> without;
    for (const auto& [name, reason] : plan.at("reasons").items())
      if (!plan.at("allocations").contains(name)) without.push_back(name);
    if (without.empty()) return plan;
    return fail(ErrorKind::not_found,
                "optimization error: no feasible allocation for servers: [{}]; /v1/optimize gives "
                "the rest of the plan, and the reasons",
                clip(join(without, ", "), 2000));
  }
  static Result<Json> optimize_all(Planner& planner, const Words& words, const std::string& body) {
    BERTH_ASSIGN(Json plan, optimize(planner, words, body));
    return feasible(std::move(plan));
  }
  /// The body's fleet takes the place of the one that was there.
  static Result<Json> optimize_one(Planner& planner, const Words&, const std::string& body) {
    BERTH_ASSIGN(System system, read_body(body));
    fleet::Plan plan;
    BERTH_ASSIGN(Json json, solved(system, planner.means_, plan));
    desire(system, plan);
    const std::unique_lock lock(planner.mutex_);
    planner.system_ = std::move(system);
    return feasible(std::move(json));
  }
  static void apply(fleet::Server& server) {
    const fleet::Load load = server.current.load;  // what arrives is no plan's to decide
    server.current = server.desired;
    server.current.load = load;
  }
  static Result<Json> apply_allocation(Planner& planner, const Words&, const std::string&) {
    const std::unique_lock lock(planner.mutex_);
    for (auto& [_, server] : planner.system_.servers) apply(server);
    return Json("Done");
  }

  // ---- One server by itself.

  static Result<fleet::ServerSize> size_of(Planner& planner, const Words& words,
                                           const std::string& body) {
    return fleet::size_as_asked(planner.system(), words.at(0), {"body", body}, planner.means_);
  }
  static Result<Json> size(Planner& planner, const Words& words, const std::string& body) {
    BERTH_ASSIGN(const auto size, size_of(planner, words, body));
    return *parse_json(fleet::size_json(size));
  }
  /// The best allocation becomes what the server is to have.
  static Result<Json> reallocate(Planner& planner, const Words& words, const std::string& body) {
    BERTH_ASSIGN(const auto size, size_of(planner, words, body));
    if (!size.best)
      return fail(ErrorKind::impossible, "{}: {}", clip(size.name), fleet::why_no_best(size));
    const std::unique_lock lock(planner.mutex_);
    if (const auto server = planner.system_.servers.find(size.name);
        server != planner.system_.servers.end())
      server->second.desired = size.accelerators.at(*size.best).allocation;
    return *parse_json(fleet::best_json(size));
  }
  static Result<Json> apply_one(Planner& planner, const Words& words, const std::string&) {
    const std::unique_lock lock(planner.mutex_);
    const auto server = planner.system_.servers.find(words.at(0));
    if (server != planner.system_.servers.end()) apply(server->second);
    return one_of<Servers>(planner.system_, words.at(0));
  }
  static Result<Json> get_system(Planner& planner, const Words&, const std::string&) {
    return *parse_json(fleet::write_document(planner.system()));
  }
  static Result<Json> health(Planner&, const Words&, const std::string&) {
    return Json{{"ok", true}};
  }
};

namespace {

using Answer = Result<Json> (*)(Planner&, const Words&, const std::string&);

struct PlannerRoute {
  Call call;
  Answer answer;
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
      "remove one accelerator; what is gone", "fleet.accelerator"},
     Calls::remove<Calls::Accelerators>},
    {{"POST", "/setCapacities", Role::control, kFamiliar, "replace capacities by name", "fleet",
      "fleet"},
     Calls::set_all<Calls::Capacities>},
    {{"POST", "/setCapacity", Role::control, kFamiliar,
      "add or replace how many there are of one type", "fleet.capacity", "fleet.capacity"},
     Calls::put_one<Calls::Capacities>},
    {{"GET", "/getCapacities", Role::read, kFamiliar, "all capacities", "fleet"},
     Calls::get_all<Calls::Capacities>},
    {{"GET", "/getCapacity/{type}", Role::read, kFamiliar, "how many there are of one type",
      "fleet.capacity"},
     Calls::get_one<Calls::Capacities>},
    {{"GET", "/removeCapacity/{type}", Role::control, kFamiliar,
      "remove how many there are of one type; what is gone", "fleet.capacity"},
     Calls::remove<Calls::Capacities>},
    {{"POST", "/setModels", Role::control, kFamiliar, "replace models by name", "fleet", "fleet"},
     Calls::set_models},
    {{"GET", "/getModels", Role::read, kFamiliar, "the names of all models", "Names"},
     Calls::model_names},
    {{"GET", "/getModel/{name}", Role::read, kFamiliar,
      "one model, with its figures on each accelerator", "fleet"},
     Calls::get_model},
    {{"GET", "/addModel/{name}", Role::control, kFamiliar, "add a model without figures", "Name"},
     Calls::add_model},
    {{"GET", "/removeModel/{name}", Role::control, kFamiliar, "remove one model; its name", "Name"},
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
      "remove one service class; what is gone", "fleet.class"},
     Calls::remove<Calls::Classes>},
    {{"GET", "/getServiceClassModelTarget/{class}/{model}", Role::read, kFamiliar,
      "the targets of one class for one model", "fleet.target"},
     Calls::get_target},
    {{"GET", "/removeServiceClassModelTarget/{class}/{model}", Role::control, kFamiliar,
      "remove the targets of one class for one model; what is gone", "fleet.target"},
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
    {{"GET", "/removeServer/{name}", Role::control, kFamiliar, "remove one server; what is gone",
      "fleet.server"},
     Calls::remove<Calls::Servers>},
    {{"POST", "/addModelAcceleratorPerf", Role::control, kFamiliar,
      "add or replace the figures of one model on one accelerator", "fleet.model", "fleet.model"},
     Calls::add_performance},
    {{"GET", "/getModelAcceleratorPerf/{model}/{accelerator}", Role::read, kFamiliar,
      "the figures of one model on one accelerator", "fleet.model"},
     Calls::get_performance},
    {{"GET", "/removeModelAcceleratorPerf/{model}/{accelerator}", Role::control, kFamiliar,
      "remove the figures of one model on one accelerator; what is gone", "fleet.model"},
     Calls::remove_performance},
    {{"POST", "/optimize", Role::control, kFamiliar,
      "plan the fleet; 404 where a server goes without", "Plan", "Optimizer"},
     Calls::optimize_all},
    {{"POST", "/optimizeOne", Role::control, kFamiliar,
      "replace the fleet and plan it; 404 where a server goes without", "Plan", "fleet"},
     Calls::optimize_one},
    {{"GET", "/applyAllocation", Role::control, kFamiliar,
      "what is desired becomes what each server has", "Name"},
     Calls::apply_allocation},
    {{"POST", "/v1/plan", Role::read, kFleet, "plan the fleet in the body, and keep nothing",
      "Plan", "fleet"},
     Calls::plan_body},
    {{"POST", "/v1/optimize", Role::control, kFleet, "plan the fleet that the server holds", "Plan",
      "Optimizer"},
     Calls::optimize},
    {{"GET", "/v1/servers/{name}/size", Role::read, kFleet,
      "one server as it is, sized on each accelerator", "Size"},
     Calls::size},
    {{"POST", "/v1/servers/{name}/size", Role::read, kFleet,
      "one server as it would be, sized on each accelerator", "Size", "SizeQuestion"},
     Calls::size},
    {{"POST", "/v1/servers/{name}/reallocate", Role::control, kFleet,
      "the best candidate becomes what one server is to have", "Candidate", "SizeQuestion"},
     Calls::reallocate},
    {{"POST", "/v1/servers/{name}/apply", Role::control, kFleet,
      "what is desired becomes what one server has", "fleet.server"},
     Calls::apply_one},
    {{"GET", "/v1/accelerators", Role::read, kFleet, "all accelerators", "fleet"},
     Calls::get_all<Calls::Accelerators>},
    {{"GET", "/v1/models", Role::read, kFleet, "all models", "fleet"},
     Calls::get_all<Calls::Models>},
    {{"GET", "/v1/system", Role::read, kFleet, "the fleet that the server holds, as one document",
      "fleet"},
     Calls::get_system},
    {{"GET", "/v1/health", Role::none, kFleet, "that the server lives", "Health"}, Calls::health},
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
                        auto json = route.answer(*this, request.parts, request.body);
                        if (!json) return failed(json.error());
                        if (has_their_types(route.call)) round_whole(*json);
                        return Reply{200, dump(*json)};
                      }});
  return routes;
}

System Planner::system() const {
  const std::shared_lock lock(mutex_);
  return system_;
}

}  // namespace berth::api
