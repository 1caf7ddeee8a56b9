// The calls of the planner's service: what each does with a Planner. For planner.cc alone.
#pragma once

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "berth/api/planner.h"
#include "berth/base/json.h"
#include "berth/base/text.h"
#include "berth/fleet/solver/server_size.h"

namespace berth::api {

using fleet::System;
using Words = std::vector<std::string>;  // of the path behind the call's name

/// How a request that plans is carried out.
struct Solving {
  const fleet::Execution& means;
  const Request& request;
};

/// What the paths stand for. Each call gives the JSON of its reply, those that
/// plan its text.
struct Calls {
  // ---- Documents. A body is a part of a fleet document; it is read as one, so
  // that its errors name the same paths.

  static Result<System> read_body(const std::string& body) {
    const fleet::Document document{"body", body};
    BERTH_ASSIGN(auto reading, fleet::read_documents(std::span(&document, 1)));
    return std::move(reading.system);
  }
  /// The body is the value of the key `key`, or, as `is_entry`, the only one of
  /// that list.
  static Result<System> read_part(const std::string& body, std::string_view key, bool is_entry) {
    BERTH_TRY(check_json(body));
    return read_body(is_entry ? fmt::format(R"({{"{}":[{}]}})", key, body)
                              : fmt::format(R"({{"{}":{}}})", key, body));
  }
  static Result<System> read_entry(const std::string& body, const char* key) {
    return read_part(body, key, true);
  }

  /// What a fleet document would say under data.list, or the only entry of that
  /// list.
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
  /// Puts the entries of the body in place of those of their names; others
  /// stay. Answers with them.
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
  /// Answers with a part of an entry.
  template <Result<Json> (*kPart)(const System&, const Words&)>
  static Result<Json> get_part(Planner& planner, const Words& words, const std::string&) {
    const std::shared_lock lock(planner.mutex_);
    return kPart(planner.system_, words);
  }
  static Result<Json> get_accelerators(Planner& planner, const Words&, const std::string&) {
    BERTH_ASSIGN(Json all, get_all<Accelerators>(planner, {}, {}));
    return std::move(all.at(Accelerators::kList));
  }

  // ---- Models: their performance data are a list of their own in a document,
  // with one entry for each accelerator.

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
  static Result<Json> remove_target(Planner& planner, const Words& words, const std::string&) {
    const std::unique_lock lock(planner.mutex_);
    BERTH_ASSIGN(Json removed, target_of(planner.system_, words));
    planner.system_.classes.at(words.at(0)).targets.erase(words.at(1));
    return removed;
  }

  // ---- Planning: on a copy, so that nobody waits for it.

  /// Fails if nobody waits for the answer any more: what would change then
  /// stays as it is.
  static Result<fleet::Plan> solved(const System& system, const Solving& solving) {
    BERTH_TRY(check(system));
    const auto candidates = fleet::candidates(system, system.options.model, solving.means);
    auto plan = fleet::solve(system, candidates, system.options, solving.means);
    if (is_abandoned(solving.request))
      return fail(ErrorKind::interrupted, "the client has left, or the server ends");
    return plan;
  }
  static std::string text(const fleet::Plan& plan) { return fleet::plan_json(plan, nullptr); }
  /// The body: the optimizer's options, or a document that holds them; none:
  /// those that are known.
  static Result<fleet::Plan> optimized(Planner& planner, const std::string& body,
                                       const Solving& solving) {
    System system = planner.system();
    if (!trim(body).empty()) {
      bool is_whole = false;
      {
        BERTH_ASSIGN(const Json json, parse_json(body));
        is_whole =
            json.is_object() && (json.contains("optimizer") || json.contains("optimizerData"));
      }
      BERTH_ASSIGN(const System part,
                   is_whole ? read_body(body) : read_part(body, "optimizer", false));
      system.options = part.options;
    }
    BERTH_ASSIGN(auto plan, solved(system, solving));
    const std::unique_lock lock(planner.mutex_);
    planner.system_.options = system.options;
    desire(planner.system_, plan);
    return plan;
  }
  static Result<std::string> optimize(Planner& planner, const Words&, const std::string& body,
                                      const Solving& solving) {
    BERTH_ASSIGN(const auto plan, optimized(planner, body, solving));
    return text(plan);
  }
  static Result<std::string> plan_body(Planner&, const Words&, const std::string& body,
                                       const Solving& solving) {
    BERTH_ASSIGN(const System system, read_body(body));
    BERTH_ASSIGN(const auto plan, solved(system, solving));
    return text(plan);
  }
  static void desire(System& system, const fleet::Plan& plan) {
    for (const auto& [name, assignment] : plan.servers)  // of a server that changed meanwhile it is
      if (const auto server = system.servers.find(name);  // the wish that was asked for
          server != system.servers.end())
        server->second.desired = assignment.allocation;
  }

  // The familiar calls answer as the reference does: not found, where a server
  // goes without.
  static Result<std::string> feasible(const fleet::Plan& plan) {
    std::vector<std::string> without;
    for (const auto& [name, server] : plan.servers)
      if (server.why != fleet::Why::served && server.why != fleet::Why::partly)
        without.push_back(name);
    if (without.empty()) return text(plan);
    return fail(ErrorKind::not_found,
                "optimization error: no feasible allocation for servers: [{}]; /v1/optimize "
                "returns the remaining plan and the reasons",
                clip(join(without, ", "), 2000));
  }
  static Result<std::string> optimize_all(Planner& planner, const Words&, const std::string& body,
                                          const Solving& solving) {
    BERTH_ASSIGN(const auto plan, optimized(planner, body, solving));
    return feasible(plan);
  }
  /// The body's fleet takes the place of the one that was there.
  static Result<std::string> optimize_one(Planner& planner, const Words&, const std::string& body,
                                          const Solving& solving) {
    BERTH_ASSIGN(System system, read_body(body));
    BERTH_ASSIGN(const auto plan, solved(system, solving));
    desire(system, plan);
    const std::unique_lock lock(planner.mutex_);
    planner.system_ = std::move(system);
    return feasible(plan);
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
                                           const std::string& body, const Solving& solving) {
    return fleet::size_as_asked(planner.system(), words.at(0), {"body", body}, solving.means);
  }
  static Result<std::string> size(Planner& planner, const Words& words, const std::string& body,
                                  const Solving& solving) {
    BERTH_ASSIGN(const auto size, size_of(planner, words, body, solving));
    return fleet::size_json(size);
  }
  /// The best allocation becomes what the server is to have.
  static Result<std::string> reallocate(Planner& planner, const Words& words,
                                        const std::string& body, const Solving& solving) {
    BERTH_ASSIGN(const auto size, size_of(planner, words, body, solving));
    if (!size.best)
      return fail(ErrorKind::impossible, "{}: {}", clip(size.name), fleet::why_no_best(size));
    const std::unique_lock lock(planner.mutex_);
    if (const auto server = planner.system_.servers.find(size.name);
        server != planner.system_.servers.end())
      server->second.desired = size.accelerators.at(*size.best).allocation;
    return fleet::best_json(size);
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

}  // namespace berth::api
