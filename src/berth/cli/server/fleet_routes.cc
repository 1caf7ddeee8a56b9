#include "berth/cli/server/fleet_routes.h"

#include "berth/api/calls/work.h"
#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/commands/fleet_input.h"
#include "berth/cli/commands/plan_day.h"
#include "berth/render/fleets/day.h"
#include "berth/render/fleets/plan.h"

namespace berth::cli {
namespace {

using api::Role;

constexpr std::string_view kPlans = "plans";

void ignore_notes(const std::vector<std::string>&) {}

/// The fleet of that number with the values of the query.
Result<fleet::System> system_of(api::Work& work, const Fleets& fleets) {
  BERTH_ASSIGN(auto system, fleets.system(*work.env, work.name()));
  BERTH_TRY(set_fleet_values(system, work.values("set")));
  BERTH_TRY(choose("--solver", work.value("solver"), fleet::kSolverNames, system.options.solver));
  for (const auto& status : {fleet::check(system.options), fleet::check(system)})
    if (!status) return fail(ErrorKind::usage, "{}", status.error().message);
  return system;
}

/// A search ends when its client leaves.
Result<fleet::Execution> execution_of(const api::Work& work) {
  const std::string percentiles = work.value("percentiles");
  if (!percentiles.empty() && percentiles != "simulated" && percentiles != "closed-form")
    return fail(ErrorKind::usage, "--percentiles: expected simulated or closed-form, got '{}'",
                clip(percentiles));
  auto execution = planning_execution(percentiles.empty() ? "simulated" : percentiles);
  execution.stop = work.request->is_abandoned;
  return execution;
}

Result<std::string> plan(api::Work& work, const Fleets& fleets) {
  BERTH_ASSIGN(auto system, system_of(work, fleets));
  BERTH_ASSIGN(const auto execution, execution_of(work));
  return api::json_of(
      engine::plan_fleet(*work.env, std::move(system), {}, execution, ignore_notes));
}

Result<std::string> day(api::Work& work, const Fleets& fleets) {
  if (fleets.profile.empty()) return fail(ErrorKind::usage, "no --profile was given");
  BERTH_ASSIGN(auto system, system_of(work, fleets));
  BERTH_ASSIGN(const auto execution, execution_of(work));
  DayChoices choices;
  choices.profile = fleets.profile;
  for (const auto& [name, choice] :
       {std::pair("startup", &choices.startup), {"min-up", &choices.min_up}})
    if (auto text = work.value(name); !text.empty()) *choice = std::move(text);
  BERTH_ASSIGN(const auto request, choices.read());
  return api::json_of(
      engine::plan_day(*work.env, std::move(system), request, execution, ignore_notes));
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
  return engine::read_fleet(env, files[place], ignore_notes);
}

std::vector<api::Route> fleet_routes(const Fleets& fleets) {
  const auto route = [&fleets](const api::Call& call, auto* answer) {
    return api::route_of(
        call, [&fleets, answer](api::Work& work) { return answer(work, fleets); }, {}, false);
  };
  return {
      {{"GET", "/v1/fleets", Role::read, kPlans, "the fleets that can be planned", "Fleets"},
       [&fleets](const api::Request&) {
         JsonWriter json;
         json.object().add("version", 1).key("fleets").list(fleets.names());
         return api::Reply{200, json.add("profile", fleets.profile).end().take()};
       }},
      route({"GET", "/v1/fleets/{number}/plan", Role::read, kPlans, "the plan of a fleet",
             "FleetPlan", "", "set percentiles solver"},
            plan),
      route({"GET", "/v1/fleets/{number}/day", Role::read, kPlans, "its plan over the day", "Day",
             "", "set percentiles startup min-up"},
            day),
  };
}

}  // namespace berth::cli
