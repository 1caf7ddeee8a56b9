#include "berth/engine/fleets/plan_choices.h"

#include <algorithm>
#include <tuple>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/engine/fleets/settings.h"

namespace berth::engine {
namespace {

constexpr int kMostSteps = 10'000;  // of a sweep

/// A bare number is cents, a duration the time for which a replica's price is paid.
Status read_transition_cost(const std::optional<std::string>& text, fleet::DayOptions& to) {
  if (!text) return {};
  const auto cents = parse_number(*text);
  if (!cents) return read_seconds("--transition-cost", text, to.change_s);
  if (*cents < 0)
    return fail(ErrorKind::usage, "--transition-cost: expected 0 or more, got '{}'", clip(*text));
  to.change_cents = *cents;
  return {};
}

Result<DayRequest> day_request(const DayChoices& given) {
  if (given.profile && given.trace)
    return fail(ErrorKind::usage, "--profile: not with --trace: a day has loads from one of them");
  if (given.replay && !given.trace)
    return fail(ErrorKind::usage, "--replay: needs --trace: only a trace has requests to replay");
  if (!given.is_wanted())
    for (const auto& [option, value] : {std::pair("--window", &given.window),
                                        {"--server", &given.server},
                                        {"--transition-cost", &given.transition_cost},
                                        {"--startup", &given.startup},
                                        {"--min-up", &given.min_up},
                                        {"--hysteresis", &given.hysteresis}})
      if (*value) return fail(ErrorKind::usage, "{}: needs --profile or --trace", option);
  DayRequest request{.profile = given.profile,
                     .trace = given.trace,
                     .server = given.server,
                     .is_replayed = given.replay};
  BERTH_TRY(read_transition_cost(given.transition_cost, request.options));
  BERTH_TRY(read_seconds("--startup", given.startup, request.options.startup_s));
  BERTH_TRY(read_seconds("--min-up", given.min_up, request.options.min_up_s));
  BERTH_TRY(read_seconds("--window", given.window, request.window_s));
  if (!given.hysteresis) return request;
  const auto part = parse_number(*given.hysteresis);
  if (!part || *part < 0 || *part > 1)
    return fail(ErrorKind::usage, "--hysteresis: expected 0 to 1, got '{}'",
                clip(*given.hysteresis));
  request.options.hysteresis = *part;
  return request;
}

Result<std::optional<ManifestRequest>> manifest_request(const ManifestChoices& given) {
  if (!given.directory) {
    for (const auto& [option, value] : {std::pair("--scaler", &given.scaler),
                                        {"--namespace", &given.kubernetes_namespace},
                                        {"--prometheus", &given.prometheus}})
      if (!value->empty()) return fail(ErrorKind::usage, "{}: needs --manifests", option);
    return std::nullopt;
  }
  if (given.directory->empty()) return fail(ErrorKind::usage, "--manifests: expected a directory");
  ManifestRequest request{
      *given.directory,
      {.kubernetes_namespace = given.kubernetes_namespace, .prometheus = given.prometheus}};
  BERTH_TRY(choose("--scaler", given.scaler, fleet::kScalerNames, request.options.scaler));
  if (!given.kubernetes_namespace.empty() && !fleet::is_dns_label(given.kubernetes_namespace))
    return fail(ErrorKind::usage, "--namespace: expected at most 63 of a-z, 0-9 and '-', got '{}'",
                clip(given.kubernetes_namespace));
  const bool is_keda = request.options.scaler == fleet::Scaler::keda;
  if (is_keda && given.prometheus.empty())
    return fail(
        ErrorKind::usage,
        "--scaler keda: requires --prometheus URL, such as http://prometheus.monitoring:9090");
  if (!is_keda && !given.prometheus.empty())
    return fail(ErrorKind::usage, "--prometheus: needs --scaler keda");
  return request;
}

/// "700", "700W", "20kW", "1.5MW"; the unit in any case.
Result<double> watts_of(std::string_view option, const std::string& text) {
  std::string number = lower(text);
  double factor = 1;
  if (number.ends_with('w')) number.pop_back();
  for (const auto& [unit, times] : {std::pair{'k', 1e3}, {'m', 1e6}})
    if (number.ends_with(unit)) {
      number.pop_back();
      factor = times;
      break;
    }
  const auto watts = parse_number(number);
  if (!watts)
    return fail(ErrorKind::usage, "{}: expected a power such as 20kW, got '{}'", option,
                clip(text));
  return factor * *watts;
}

/// The options of the document, except where the choices have others.
Result<fleet::Options> options_of(const PlanChoices& given, fleet::Options options) {
  BERTH_TRY(choose("--model", given.model, fleet::kModelNames, options.model));
  BERTH_TRY(choose("--solver", given.solver, fleet::kSolverNames, options.solver));
  BERTH_TRY(choose("--saturation", given.saturation, fleet::kSaturationNames, options.saturation));
  options.delayed_best_effort |= given.delayed_best_effort;
  options.heterogeneous |= given.heterogeneous;
  options.disaggregated |= given.disaggregated;
  if (!given.power_budget.empty()) {
    BERTH_ASSIGN(options.power_budget_w, watts_of("--power-budget", given.power_budget));
  }
  return options;
}

Result<fleet::Execution> execution_of(os::Env& env, const PlanChoices& given,
                                      const std::function<bool()>& is_abandoned) {
  BERTH_ASSIGN(auto execution, parse_execution(given.percentiles, is_abandoned));
  if (given.time_limit.empty()) return execution;
  const auto limit = parse_duration(given.time_limit);
  if (!limit) return fail(ErrorKind::usage, "--time-limit: {}", limit.error().message);
  limit_time(execution, env, *limit);
  return execution;
}

Result<fleet::SweepRange> range_of(const std::string& text) {
  BERTH_ASSIGN(auto setting, parse_setting("--sweep", text));
  std::vector<double> numbers;
  std::string_view rest = setting.second;
  for (std::size_t dots = 0; dots != std::string_view::npos && numbers.size() < 4;) {
    dots = rest.find("..");
    BERTH_ASSIGN(const double number, parse_value("--sweep", std::string(rest.substr(0, dots))));
    numbers.push_back(number);
    if (dots != std::string_view::npos) rest.remove_prefix(dots + 2);
  }
  if (numbers.size() == 2) numbers.push_back(1);
  if (numbers.size() != 3 || numbers[2] <= 0 || numbers[1] < numbers[0] ||
      (numbers[1] - numbers[0]) / numbers[2] > kMostSteps)
    return fail(ErrorKind::usage,
                "--sweep: expected PATH=FIRST..LAST..STEP, at most {} steps, got '{}'", kMostSteps,
                clip(text));
  return fleet::SweepRange{std::move(setting.first), numbers[0], numbers[1], numbers[2]};
}

Result<fleet::Sweep> sweep_of(fleet::System system, const PlanChoices& given,
                              const fleet::Execution& execution, const FleetNotes& notes) {
  BERTH_ASSIGN(const auto range, range_of(given.sweep));
  BERTH_TRY(set_fleet_value("--sweep", system, range.path, range.first));
  note_missing(system, notes);
  auto found = fleet::sweep(std::move(system), range, execution);
  if (!found) return fail(ErrorKind::usage, "--sweep: {}", found.error().message);
  return *std::move(found);
}

/// usage: what is of one load alone is given with a day.
Status check_day_goes_with(const PlanChoices& given) {
  for (const auto& [option, is_given, why] :
       {std::tuple("--solver greedy", lower(given.solver) == "greedy",
                   "a day is planned by optimal or unlimited, and is compared with a greedy plan"),
        {"--saturation", !given.saturation.empty(), "only the solver greedy has it"},
        {"--delayed-best-effort", given.delayed_best_effort, "only the solver greedy has it"},
        {"--heterogeneous", given.heterogeneous,
         "over a day each server has one accelerator at a time"},
        {"--disaggregated", given.disaggregated, "over a day prefill and decode stay together"},
        {"--sweep", !given.sweep.empty(), "a day has its own loads"},
        {"--power-budget", !given.power_budget.empty(), "a day is planned without one"},
        {"--candidates", given.lists_candidates, "they are of one load, and a day has many"}})
    if (is_given)
      return fail(ErrorKind::usage, "{}: not with --profile or --trace: {}", option, why);
  return {};
}

}  // namespace

Status check_choices(const PlanChoices& given) {
  if (given.day.is_wanted()) BERTH_TRY(check_day_goes_with(given));
  BERTH_TRY(day_request(given.day));
  BERTH_TRY(manifest_request(given.manifests));
  if (!given.starts && !given.clusters.empty())
    return fail(ErrorKind::usage, "--on: needs --start");
  if ((given.manifests.directory || given.starts) &&
      (given.day.is_wanted() || !given.sweep.empty() || given.has_no_plan))
    return fail(ErrorKind::usage, "{}: of one plan, not of a day, a sweep or --candidates",
                given.starts ? "--start" : "--manifests");
  if (given.manifests.directory && given.starts)
    return fail(ErrorKind::usage, "--manifests: not with --start");
  return {};
}

Result<Planned> plan(os::Env& env, fleet::System system, const PlanChoices& given,
                     const FleetNotes& notes, const std::function<bool()>& is_abandoned) {
  BERTH_TRY(check_choices(given));
  BERTH_TRY(set_fleet_values(system, given.sets));
  BERTH_ASSIGN(system.options, options_of(given, system.options));
  for (const auto& status : {fleet::check(system.options), fleet::check(system)})
    if (!status) return fail(ErrorKind::usage, "{}", status.error().message);
  BERTH_ASSIGN(const auto execution, execution_of(env, given, is_abandoned));
  note_averages(system, notes);
  if (!given.day.is_wanted()) notes(notes_on_pairs(system));
  if (!given.day.is_wanted() && !given.sweep.empty())
    return sweep_of(std::move(system), given, execution, notes);
  note_missing(system, notes);
  if (given.day.is_wanted()) {
    BERTH_ASSIGN(const auto request, day_request(given.day));
    return plan_day(env, std::move(system), request, execution, notes);
  }
  FleetPlanRequest request{.lists_candidates = given.lists_candidates,
                           .is_solved = !given.has_no_plan || given.is_plan_checked};
  BERTH_ASSIGN(request.manifests, manifest_request(given.manifests));
  if (given.starts) request.start_on = given.clusters;
  request.context = given.context;
  return plan_fleet(env, std::move(system), std::move(request), execution, notes);
}

bool leaves_unserved(const Planned& planned) {
  if (const auto* made = std::get_if<FleetPlan>(&planned))
    return fleet::leaves_unserved(made->plan.proof.unserved);
  if (const auto* sweep = std::get_if<fleet::Sweep>(&planned))
    return std::ranges::any_of(
        sweep->steps, [](const auto& step) { return fleet::leaves_unserved(step.unserved); });
  return std::get<PlannedDay>(planned).leaves_unserved();
}

}  // namespace berth::engine
