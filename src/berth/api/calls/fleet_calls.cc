#include "berth/api/calls/fleet_calls.h"

#include <type_traits>

#include "berth/api/calls/body.h"
#include "berth/api/calls/work.h"
#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/engine/fleets/fit.h"
#include "berth/engine/fleets/fleet_simulation.h"
#include "berth/engine/fleets/plan_choices.h"
#include "berth/engine/fleets/server_size.h"
#include "berth/engine/fleets/settings.h"
#include "berth/experiment/document/reading.h"
#include "berth/render/fleets/day.h"
#include "berth/render/fleets/fit.h"
#include "berth/render/fleets/plan.h"
#include "berth/render/fleets/plan_report.h"
#include "berth/render/fleets/simulation.h"
#include "berth/render/fleets/size.h"

namespace berth::api {
namespace {

constexpr std::string_view kPlans = "plans", kPlanPage = "text/html; charset=utf-8";

engine::FleetNotes fleet_notes(Work& work) {
  return [&work](const auto& notes) {
    work.notes.insert(work.notes.end(), notes.begin(), notes.end());
  };
}

/// Reads the body of a call: the fleet, which it returns, and the values of these keys.
Result<fleet::System> read_fleet_body(Work& work, std::vector<BodyKey> keys) {
  std::string path;
  keys.insert(keys.end(), {{.name = "path", .to = &path}, {.name = "fleet"}});
  BERTH_ASSIGN(const Field body, read_body(work.request->body, keys));
  const auto fleet = body.find("fleet");
  if (path.empty() == !fleet) return body.error("expected a fleet or a path");
  if (!fleet) return engine::read_fleet(*work.env, path, fleet_notes(work));
  BERTH_ASSIGN(const std::string document,
               fleet->is_map() ? experiment::json_text(*fleet) : fleet->text());
  const fleet::Document given{"fleet", document};
  BERTH_ASSIGN(auto reading, fleet::read_documents({&given, 1}));
  fleet_notes(work)(reading.notes);
  return std::move(reading.system);
}

Result<std::string> json_of_plan(const Result<engine::Planned>& planned) {
  if (!planned) return std::unexpected(planned.error());
  return std::visit(
      [](const auto& one) { return json_of(Result<std::remove_cvref_t<decltype(one)>>(one)); },
      *planned);
}

Result<std::string> read_and_plan(Work& work, engine::PlanChoices choices) {
  auto& day = choices.day;
  auto& manifests = choices.manifests;
  BERTH_ASSIGN(auto system,
               read_fleet_body(work, {{"set", &choices.sets},
                                      {"model", &choices.model},
                                      {"solver", &choices.solver},
                                      {"saturation", &choices.saturation},
                                      {"power_budget", &choices.power_budget},
                                      {"delayed_best_effort", &choices.delayed_best_effort},
                                      {"heterogeneous", &choices.heterogeneous},
                                      {"disaggregated", &choices.disaggregated},
                                      {"time_limit", &choices.time_limit},
                                      {"percentiles", &choices.percentiles},
                                      {"candidates", &choices.lists_candidates},
                                      {"sweep", &choices.sweep},
                                      {"profile", &day.profile},
                                      {"trace", &day.trace},
                                      {"server", &day.server},
                                      {"window", &day.window},
                                      {"transition_cost", &day.transition_cost},
                                      {"startup", &day.startup},
                                      {"min_up", &day.min_up},
                                      {"hysteresis", &day.hysteresis},
                                      {"replay", &day.replay},
                                      {"manifests", &manifests.directory},
                                      {"scaler", &manifests.scaler},
                                      {"namespace", &manifests.kubernetes_namespace},
                                      {"prometheus", &manifests.prometheus},
                                      {"on", &choices.clusters}}));
  BERTH_ASSIGN(const std::string json,
               json_of_plan(engine::plan(*work.env, std::move(system), choices, fleet_notes(work),
                                         work.request->is_abandoned)));
  return with_notes(work, json);
}

Result<std::string> plan_fleet(Work& work) {
  return read_and_plan(work, {});
}

Result<std::string> start_fleet(Work& work) {
  return read_and_plan(work, {.starts = true, .context = &work.context});
}

Result<std::string> size_server(Work& work) {
  engine::SizeChoices choices;
  BERTH_ASSIGN(auto system, read_fleet_body(work, {{"server", &choices.server},
                                                   {"accelerator", &choices.question.accelerator},
                                                   {"replicas", &choices.question.replicas},
                                                   {"load", &choices.load},
                                                   {"model", &choices.model},
                                                   {"percentiles", &choices.percentiles},
                                                   {"set", &choices.sets}}));
  BERTH_ASSIGN(const std::string json,
               json_of(engine::size_server(std::move(system), choices, fleet_notes(work))));
  return with_notes(work, json);
}

Result<std::string> simulate_fleet(Work& work) {
  engine::SimulationChoices choices;
  BERTH_ASSIGN(const auto system, read_fleet_body(work, {{"servers", &choices.servers},
                                                         {"current", &choices.current},
                                                         {"at_load", &choices.at_load},
                                                         {"tokens_only", &choices.tokens_only},
                                                         {"routing", &choices.routing},
                                                         {"percentiles", &choices.percentiles},
                                                         {"trace", &choices.trace},
                                                         {"in_cv", &choices.in_cv},
                                                         {"out_cv", &choices.out_cv},
                                                         {"arrival_cv", &choices.arrival_cv},
                                                         {"requests", &choices.requests},
                                                         {"replicas", &choices.replicas},
                                                         {"seed", &choices.seed}}));
  BERTH_ASSIGN(auto request, engine::simulation_request(choices));
  BERTH_ASSIGN(const auto execution,
               engine::parse_execution(choices.percentiles, work.request->is_abandoned));
  engine::note_missing(system, fleet_notes(work));
  BERTH_ASSIGN(const std::string json,
               json_of(engine::simulate_fleet(*work.env, system, std::move(request), execution,
                                              fleet_notes(work))));
  return with_notes(work, json);
}

Result<std::string> fit_models(Work& work) {
  engine::FitRequest request;
  auto& metrics = request.metrics;
  const std::vector<BodyKey> keys = {
      {"files", &request.files},    {"held_out", &request.held_out},
      {"llm", &request.llm},        {"accelerator", &request.accelerator},
      {"write", &request.write},    {"all", &request.all},
      {"prometheus", &metrics.url}, {"from", &metrics.from},
      {"to", &metrics.to},          {"window", &metrics.window}};
  BERTH_TRY(read_body(work.request->body, keys));
  BERTH_ASSIGN(const std::string json, json_of(engine::fit_performance(
                                           *work.env, request, fleet_notes(work), work.note())));
  return with_notes(work, json);
}

Result<std::string> report_plan(Work& work) {
  std::string title = "fleet";
  BERTH_ASSIGN(const auto system, read_fleet_body(work, {{"title", &title}}));
  BERTH_ASSIGN(const auto execution,
               engine::parse_execution("closed-form", work.request->is_abandoned));
  return render::to_html(render::report_of_plan(title, system, fleet::plan(system, execution)));
}

constexpr WorkCall kFleetCalls[] = {
    {{"POST", "/v1/fleet-plan", Role::control, kPlans,
      "plan a fleet, sweep one of its values, or plan a day", "FleetAnswer", "FleetPlanRequest"},
     plan_fleet,
     false},
    {{"POST", "/v1/fleet-start", Role::control, kPlans,
      "plan a fleet and start its servers as runs", "FleetAnswer", "FleetPlanRequest"},
     start_fleet},
    {{"POST", "/v1/fleet-size", Role::control, kPlans, "size one server on each accelerator",
      "FleetAnswer", "FleetSizeRequest"},
     size_server,
     false},
    {{"POST", "/v1/fleet-simulation", Role::control, kPlans,
      "simulate the servers request by request", "FleetAnswer", "FleetSimulationRequest"},
     simulate_fleet,
     false},
    {{"POST", "/v1/fleet-fit", Role::control, kPlans,
      "fit performance parameters to benchmarks or metrics", "FleetAnswer", "FleetFitRequest"},
     fit_models,
     false},
    {{"POST", "/v1/fleet-report", Role::control, kPlans, "a plan as one page", kPlanPage,
      "FleetReportRequest"},
     report_plan,
     false},
};

engine::PlanChoices choices_of(const Work& work) {
  engine::PlanChoices choices{.sets = work.values("set"), .solver = work.value("solver")};
  if (auto text = work.value("percentiles"); !text.empty()) choices.percentiles = std::move(text);
  return choices;
}

Result<std::string> plan_of_page(Work& work, const Fleets& fleets) {
  BERTH_ASSIGN(auto system, fleets.system(*work.env, work.name()));
  return json_of_plan(engine::plan(*work.env, std::move(system), choices_of(work),
                                   fleet_notes(work), work.request->is_abandoned));
}

Result<std::string> day_of_page(Work& work, const Fleets& fleets) {
  if (fleets.profile.empty()) return fail(ErrorKind::usage, "no --profile was given");
  BERTH_ASSIGN(auto system, fleets.system(*work.env, work.name()));
  auto choices = choices_of(work);
  choices.day.profile = fleets.profile;
  for (const auto& [name, choice] :
       {std::pair("startup", &choices.day.startup), {"min-up", &choices.day.min_up}})
    if (auto text = work.value(name); !text.empty()) *choice = std::move(text);
  return json_of_plan(engine::plan(*work.env, std::move(system), choices, fleet_notes(work),
                                   work.request->is_abandoned));
}

}  // namespace

std::vector<std::string> Fleets::names() const {
  std::vector<std::string> names = files;
  if (planner != nullptr && !planner->system().servers.empty()) names.push_back(planner_name);
  return names;
}

Result<fleet::System> Fleets::system(os::Env& env, std::string_view number) const {
  const std::size_t count = names().size();
  const auto at = parse_integer(number);
  if (!at || *at < 0 || *at >= static_cast<std::int64_t>(count))
    return fail(ErrorKind::usage, "expected the number of a fleet, less than {}", count);
  const auto place = static_cast<std::size_t>(*at);
  if (place >= files.size()) return planner->system();
  return engine::read_fleet(env, files[place], [](const auto&) {});
}

std::vector<Route> page_fleet_routes(const Fleets& fleets) {
  const auto route = [&fleets](const Call& call, auto* answer) {
    return route_of(
        call, [&fleets, answer](Work& work) { return answer(work, fleets); }, {}, false);
  };
  return {
      {{"GET", "/v1/fleets", Role::read, kPlans, "the fleets that can be planned", "Fleets"},
       [&fleets](const Request&) {
         JsonWriter json;
         json.object().add("version", 1).key("fleets").list(fleets.names());
         return Reply{200, json.add("profile", fleets.profile).end().take()};
       }},
      route({"GET", "/v1/fleets/{number}/plan", Role::read, kPlans, "the plan of a fleet",
             "FleetPlan", "", "set percentiles solver"},
            plan_of_page),
      route({"GET", "/v1/fleets/{number}/day", Role::read, kPlans, "its plan over the day", "Day",
             "", "set percentiles startup min-up"},
            day_of_page),
  };
}

std::vector<Route> fleet_routes(const Home& home) {
  return routes_of(kFleetCalls, home);
}

}  // namespace berth::api
