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

/// A fleet document, as JSON or as its text.
struct FleetText {
  std::string text;
};
Status read_value(const Field& field, FleetText& to) {
  BERTH_ASSIGN(to.text, field.is_map() ? experiment::json_text(field) : field.text());
  return {};
}

struct FleetSource {
  std::string path;
  FleetText fleet;
};
struct ReportChoices {
  std::string title = "fleet";
};

}  // namespace berth::api

namespace berth {

template <>
inline constexpr std::string_view kSchemaNameOf<api::FleetText> = "fleet";
template <>
inline constexpr auto kRecordOf<api::FleetSource> = Record{
    "FleetSource", "A fleet.",
    optional_key("path", &api::FleetSource::path, "A fleet document or a directory of them."),
    optional_key("fleet", &api::FleetSource::fleet, "The document itself, or its text.")};

template <auto kMember>
inline constexpr auto of_day = inner<&engine::PlanChoices::day, kMember>;
template <auto kMember>
inline constexpr auto of_manifests = inner<&engine::PlanChoices::manifests, kMember>;
constexpr std::string_view kPercentileModels[] = {"simulated", "closed-form"};

template <>
inline constexpr auto kRecordOf<engine::PlanChoices> = Record{
    "FleetPlanRequest",
    "The options of berth plan.",
    optional_key("set", &engine::PlanChoices::sets, "Changed values, such as capacity.H100=16."),
    optional_key("model", &engine::PlanChoices::model, fleet::kModelNames.all()),
    optional_key("solver", &engine::PlanChoices::solver, fleet::kSolverNames.all()),
    optional_key("saturation", &engine::PlanChoices::saturation, fleet::kSaturationNames.all()),
    optional_key("power_budget", &engine::PlanChoices::power_budget, "Such as 20kW."),
    optional_key("delayed_best_effort", &engine::PlanChoices::delayed_best_effort),
    optional_key("heterogeneous", &engine::PlanChoices::heterogeneous),
    optional_key("disaggregated", &engine::PlanChoices::disaggregated),
    optional_key("time_limit", &engine::PlanChoices::time_limit, "Such as 2s."),
    optional_key("percentiles", &engine::PlanChoices::percentiles, kPercentileModels),
    optional_key("candidates", &engine::PlanChoices::lists_candidates),
    optional_key("sweep", &engine::PlanChoices::sweep, "Such as capacity.H100=8..64..8."),
    optional_key("profile", of_day<&engine::DayChoices::profile>, "Loads over a day: a CSV file."),
    optional_key("trace", of_day<&engine::DayChoices::trace>, "Requests of a day: a CSV file."),
    optional_key("server", of_day<&engine::DayChoices::server>,
                 "The server that gets the whole trace."),
    optional_key("window", of_day<&engine::DayChoices::window>),
    optional_key("transition_cost", of_day<&engine::DayChoices::transition_cost>),
    optional_key("startup", of_day<&engine::DayChoices::startup>),
    optional_key("min_up", of_day<&engine::DayChoices::min_up>),
    optional_key("hysteresis", of_day<&engine::DayChoices::hysteresis>),
    optional_key("replay", of_day<&engine::DayChoices::replay>),
    optional_key("manifests", of_manifests<&engine::ManifestChoices::directory>,
                 "The directory for Kubernetes manifests."),
    optional_key("scaler", of_manifests<&engine::ManifestChoices::scaler>,
                 fleet::kScalerNames.all()),
    optional_key("namespace", of_manifests<&engine::ManifestChoices::kubernetes_namespace>),
    optional_key("prometheus", of_manifests<&engine::ManifestChoices::prometheus>),
    optional_key("on", &engine::PlanChoices::clusters, "The clusters on which the servers start.")};
template <>
inline constexpr auto kRecordOf<engine::SizeChoices> = Record{
    "FleetSizeRequest",
    "The options of berth size.",
    key("server", &engine::SizeChoices::server),
    optional_key("accelerator",
                 inner<&engine::SizeChoices::question, &fleet::SizeQuestion::accelerator>,
                 "Only this accelerator."),
    optional_key("replicas", inner<&engine::SizeChoices::question, &fleet::SizeQuestion::replicas>),
    optional_key("load", &engine::SizeChoices::load, "Requests per minute."),
    optional_key("model", &engine::SizeChoices::model, fleet::kModelNames.all()),
    optional_key("percentiles", &engine::SizeChoices::percentiles, kPercentileModels),
    optional_key("set", &engine::SizeChoices::sets)};
template <>
inline constexpr auto kRecordOf<engine::SimulationChoices> =
    Record{"FleetSimulationRequest",
           "The options of berth simulate.",
           optional_key("servers", &engine::SimulationChoices::servers),
           optional_key("current", &engine::SimulationChoices::current),
           optional_key("at_load", &engine::SimulationChoices::at_load),
           optional_key("tokens_only", &engine::SimulationChoices::tokens_only),
           optional_key("routing", &engine::SimulationChoices::routing, fleet::kRoutingNames.all()),
           optional_key("percentiles", &engine::SimulationChoices::percentiles, kPercentileModels),
           optional_key("trace", &engine::SimulationChoices::trace, "Requests: a CSV file."),
           optional_key("in_cv", &engine::SimulationChoices::in_cv),
           optional_key("out_cv", &engine::SimulationChoices::out_cv),
           optional_key("arrival_cv", &engine::SimulationChoices::arrival_cv),
           optional_key("requests", &engine::SimulationChoices::requests),
           optional_key("replicas", &engine::SimulationChoices::replicas),
           optional_key("seed", &engine::SimulationChoices::seed)};
template <auto kMember>
inline constexpr auto of_metrics = inner<&engine::FitRequest::metrics, kMember>;
template <>
inline constexpr auto kRecordOf<engine::FitRequest> =
    Record{"FleetFitRequest",
           "The options of berth fit.",
           optional_key("files", &engine::FitRequest::files,
                        "Results of benchmark tools, or directories of them."),
           optional_key("held_out", &engine::FitRequest::held_out),
           optional_key("llm", &engine::FitRequest::llm),
           optional_key("accelerator", &engine::FitRequest::accelerator),
           optional_key("write", &engine::FitRequest::write,
                        "The fleet document that receives the parameters."),
           optional_key("all", &engine::FitRequest::all),
           optional_key("prometheus", of_metrics<&engine::MetricsWanted::url>,
                        "The URL of a Prometheus server."),
           optional_key("from", of_metrics<&engine::MetricsWanted::from>),
           optional_key("to", of_metrics<&engine::MetricsWanted::to>),
           optional_key("window", of_metrics<&engine::MetricsWanted::window>)};
template <>
inline constexpr auto kRecordOf<api::ReportChoices> =
    Record{"FleetReportRequest", "A fleet that is planned for a report.",
           optional_key("title", &api::ReportChoices::title)};

}  // namespace berth

namespace berth::api {
namespace {

constexpr std::string_view kPlans = "plans", kPlanPage = "text/html; charset=utf-8";

engine::FleetNotes fleet_notes(Work& work) {
  return [&work](const auto& notes) {
    work.notes.insert(work.notes.end(), notes.begin(), notes.end());
  };
}

/// Reads the body of a call into the choices and returns its fleet.
template <class Choices>
Result<fleet::System> read_fleet_body(Work& work, Choices& choices) {
  FleetSource source;
  BERTH_TRY(read_body(work.request->body, source, choices));
  if (source.path.empty() == source.fleet.text.empty())
    return fail(ErrorKind::invalid, "request: expected a fleet or a path");
  if (!source.path.empty()) return engine::read_fleet(*work.env, source.path, fleet_notes(work));
  const fleet::Document given{"fleet", source.fleet.text};
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
  BERTH_ASSIGN(auto system, read_fleet_body(work, choices));
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
  BERTH_ASSIGN(auto system, read_fleet_body(work, choices));
  BERTH_ASSIGN(const std::string json,
               json_of(engine::size_server(std::move(system), choices, fleet_notes(work))));
  return with_notes(work, json);
}

Result<std::string> simulate_fleet(Work& work) {
  engine::SimulationChoices choices;
  BERTH_ASSIGN(const auto system, read_fleet_body(work, choices));
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
  BERTH_TRY(read_body(work.request->body, request));
  BERTH_ASSIGN(const std::string json, json_of(engine::fit_performance(
                                           *work.env, request, fleet_notes(work), work.note())));
  return with_notes(work, json);
}

Result<std::string> report_plan(Work& work) {
  ReportChoices choices;
  BERTH_ASSIGN(const auto system, read_fleet_body(work, choices));
  BERTH_ASSIGN(const auto execution,
               engine::parse_execution("closed-form", work.request->is_abandoned));
  return render::to_html(
      render::report_of_plan(choices.title, system, fleet::plan(system, execution)));
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

void add_fleet_request_schemas(JsonWriter& json) {
  add_schema<engine::PlanChoices, FleetSource>(json);
  add_schema<engine::SizeChoices, FleetSource>(json);
  add_schema<engine::SimulationChoices, FleetSource>(json);
  add_schema<ReportChoices, FleetSource>(json);
  add_schema<engine::FitRequest>(json);
}

std::vector<Route> fleet_routes(const Home& home) {
  return routes_of(kFleetCalls, home);
}

}  // namespace berth::api
