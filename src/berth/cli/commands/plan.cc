// berth plan: how many of which accelerator a fleet of inference servers needs, and why.
#include <algorithm>
#include <tuple>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/commands/fleet_input.h"
#include "berth/cli/commands/manifests.h"
#include "berth/cli/commands/plan_day.h"
#include "berth/cli/commands/plan_start.h"
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/output.h"
#include "berth/engine/fleets/fleet_plan.h"
#include "berth/fleet/model/names.h"
#include "berth/fleet/solver/sweep.h"
#include "berth/render/fleets/day.h"
#include "berth/render/fleets/plan.h"

namespace berth::cli {
namespace {

constexpr int kMostSteps = 10'000;  // of a sweep

struct PlanOptions {
  Output output;
  std::string path;
  std::string model, solver, saturation, power_budget;  // as written; "": the document's
  std::string time_limit, sweep;
  std::vector<std::string> sets;  // "capacity.H100=16"
  bool delayed_best_effort = false, heterogeneous = false, disaggregated = false;
  bool candidates = false, fail_unserved = false, wide = false;
  std::string percentiles = "simulated";
  DayChoices day;
  ManifestChoices manifests;
  StartChoices start;

  void add_to(Options& options) {
    output.add_to(options);
    add_fleet(options, path);
    options.group("Planning");
    options.value("--solver", solver, "optimal (default), greedy or unlimited").named("SOLVER");
    options.value("--model", model, "Performance model: calibrated (default) or reference")
        .named("MODEL");
    add_percentiles(options, percentiles);
    options
        .value("--saturation", saturation,
               "With greedy: None, PriorityExhaustive, PriorityRoundRobin or RoundRobin")
        .named("POLICY");
    options.flag("--delayed-best-effort", delayed_best_effort,
                 "With greedy: serve best effort after all priorities");
    options.flag("--heterogeneous", heterogeneous,
                 "Allow two accelerator types for one server (optimal, unlimited)");
    options.flag("--disaggregated", disaggregated,
                 "Separate prefill and decode where that is better (optimal, unlimited)");
    options
        .value("--power-budget", power_budget,
               "Limit the power of all replicas, by the power curves, such as 20kW")
        .named("POWER");
    options.value("--time-limit", time_limit, "Stop at the best plan found so far, such as 2s")
        .named("DURATION");
    options.flag("--candidates", candidates, "List every server on every accelerator");
    options.flag("--wide", wide, "Show all columns: class, batch, use, power, reason");
    options.flag("--fail-unserved", fail_unserved, "Exit with 1 if a server cannot be served");
    options.group("What if");
    options
        .list("--set", sets,
              "Change a value: capacity.TYPE, accelerator.NAME.cost, server.NAME.arrivalRate, ...")
        .named("PATH=VALUE");
    options.value("--sweep", sweep, "Show cost and unserved load over a range of such a value")
        .named("PATH=FIRST..LAST..STEP");
    options.group("Plan a day");
    day.add_to(options);
    options.group("Deploy");
    manifests.add_to(options);
    start.add_to(options);
    options.footer(
        "Examples:\n"
        "  berth plan examples/fleet\n"
        "  berth plan examples/fleet --set capacity.H100=16\n"
        "  berth plan examples/fleet --sweep capacity.H100=8..64..8\n"
        "  berth plan examples/fleet --profile examples/fleet/day.csv --startup 3m --min-up 1h\n"
        "  berth plan examples/fleet --trace requests.csv --server assistant --replay\n"
        "  berth plan examples/fleet --manifests k8s --namespace llm\n"
        "  berth plan fleet.json --start");
  }
};

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

/// The options of the document, except where the command line has others.
Result<fleet::Options> options_of(const PlanOptions& given, fleet::Options options) {
  BERTH_TRY(choose("--model", given.model, fleet::kModelNames, options.model));
  BERTH_TRY(choose("--solver", given.solver, fleet::kSolverNames, options.solver));
  BERTH_TRY(choose("--saturation", given.saturation, fleet::kSaturationNames, options.saturation));
  options.delayed_best_effort |= given.delayed_best_effort;
  options.heterogeneous |= given.heterogeneous;
  options.disaggregated |= given.disaggregated;
  if (!given.power_budget.empty()) {
    BERTH_ASSIGN(options.power_budget_w, watts_of("--power-budget", given.power_budget));
  }
  if (auto status = fleet::check(options); !status)
    return fail(ErrorKind::usage, "{}", status.error().message);
  return options;
}

/// planning_execution(), with the time limit of --time-limit.
Result<fleet::Execution> execution_of(os::Env& env, const PlanOptions& given) {
  auto execution = planning_execution(given.percentiles);
  if (given.time_limit.empty()) return execution;
  const auto limit = parse_duration(given.time_limit);
  if (!limit) return fail(ErrorKind::usage, "--time-limit: {}", limit.error().message);
  engine::limit_time(execution, env, *limit);
  return execution;
}

Result<fleet::SweepRange> range_of(const std::string& text) {
  BERTH_ASSIGN(auto setting, setting_of("--sweep", text));
  std::vector<double> numbers;
  std::string_view rest = setting.value;
  for (std::size_t dots = 0; dots != std::string_view::npos && numbers.size() < 4;) {
    dots = rest.find("..");
    BERTH_ASSIGN(const double number, number_given("--sweep", std::string(rest.substr(0, dots))));
    numbers.push_back(number);
    if (dots != std::string_view::npos) rest.remove_prefix(dots + 2);
  }
  if (numbers.size() == 2) numbers.push_back(1);
  if (numbers.size() != 3 || numbers[2] <= 0 || numbers[1] < numbers[0] ||
      (numbers[1] - numbers[0]) / numbers[2] > kMostSteps)
    return fail(ErrorKind::usage,
                "--sweep: expected PATH=FIRST..LAST..STEP, at most {} steps, got '{}'", kMostSteps,
                clip(text));
  return fleet::SweepRange{std::move(setting.path), numbers[0], numbers[1], numbers[2]};
}

/// usage: what is of one load alone is given with a day.
Status check_day_goes_with(const PlanOptions& given) {
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
        {"--candidates", given.candidates, "they are of one load, and a day has many"}})
    if (is_given)
      return fail(ErrorKind::usage, "{}: not with --profile or --trace: {}", option, why);
  return {};
}

/// usage: options that exclude each other.
Status check_words(const PlanOptions& given, bool lists_candidates_alone) {
  BERTH_TRY(given.day.wanted() ? check_day_goes_with(given) : check_no_day(given.day));
  BERTH_TRY(given.manifests.read());
  BERTH_TRY(given.start.check());
  if ((given.manifests.wanted() || given.start.wanted) &&
      (given.day.wanted() || !given.sweep.empty() || lists_candidates_alone))
    return fail(ErrorKind::usage, "{}: of one plan, not of a day, a sweep or --candidates",
                given.start.wanted ? "--start" : "--manifests");
  return {};
}

Result<int> sweep(fleet::System system, const fleet::Execution& execution,
                  const PlanOptions& given) {
  BERTH_ASSIGN(const auto range, range_of(given.sweep));
  BERTH_TRY(set_fleet_value("--sweep", system, range.path, range.first));
  engine::note_missing(system, print_notes);
  auto found = fleet::sweep(std::move(system), range, execution);
  if (!found) return fail(ErrorKind::usage, "--sweep: {}", found.error().message);
  given.output.print(*found);
  const bool is_short = std::ranges::any_of(
      found->steps, [](const auto& step) { return fleet::leaves_unserved(step.unserved); });
  return given.fail_unserved && is_short ? 1 : 0;
}

Result<int> plan(os::Env& env, const PlanOptions& given) {
  const bool lists_candidates_alone = given.candidates && !given.output.is_json();
  BERTH_TRY(check_words(given, lists_candidates_alone));
  BERTH_ASSIGN(auto system, engine::read_fleet(env, given.path, print_notes));
  BERTH_TRY(set_fleet_values(system, given.sets));
  BERTH_ASSIGN(system.options, options_of(given, system.options));
  if (auto status = check(system); !status)
    return fail(ErrorKind::usage, "{}", status.error().message);
  engine::note_averages(system, print_notes);
  if (!given.day.wanted()) print_notes(engine::notes_on_pairs(system));
  BERTH_ASSIGN(const auto execution, execution_of(env, given));
  if (!given.day.wanted() && !given.sweep.empty())
    return sweep(std::move(system), execution, given);
  engine::note_missing(system, print_notes);
  if (given.day.wanted()) {
    BERTH_ASSIGN(const auto request, given.day.read());
    BERTH_ASSIGN(const auto day,
                 engine::plan_day(env, std::move(system), request, execution, print_notes));
    given.output.print(day);
    return given.fail_unserved && day.leaves_unserved() ? 1 : 0;
  }
  engine::FleetPlanRequest request{.lists_candidates = given.candidates,
                                   .is_solved = !lists_candidates_alone || given.fail_unserved};
  if (given.manifests.wanted()) {
    BERTH_ASSIGN(auto options, given.manifests.read());
    request.manifests = {*given.manifests.directory, std::move(options)};
  }
  if (given.start.wanted) request.start_on = given.start.clusters;
  BERTH_ASSIGN(auto made, engine::plan_fleet(env, std::move(system), std::move(request), execution,
                                             print_notes));
  made.is_wide = given.wide;
  given.output.print(made);
  return given.fail_unserved && fleet::leaves_unserved(made.plan.proof.unserved) ? 1 : 0;
}

}  // namespace

Command plan_command() {
  return command("plan", "Plan accelerators and replicas for a fleet of LLM servers", plan);
}

}  // namespace berth::cli
