// berth plan: how many of which accelerator a fleet of inference servers needs, and why.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/candidates_view.h"
#include "berth/cli/fleet_input.h"
#include "berth/cli/fleet_view.h"
#include "berth/cli/json_output.h"
#include "berth/cli/manifests.h"
#include "berth/cli/options.h"
#include "berth/cli/plan_day.h"
#include "berth/cli/plan_start.h"
#include "berth/cli/print.h"
#include "berth/cli/shared_options.h"
#include "berth/fleet/fleet.h"
#include "berth/render/table.h"

namespace berth::cli {
namespace {

constexpr int kMostSteps = 10'000;  // of a sweep

struct PlanOptions {
  bool json = false;
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
    options.json(json);
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

template <class Choice>
Status choose(std::string_view option, const std::string& written,
              std::optional<Choice> (*choice)(std::string_view), std::string_view known,
              Choice& to) {
  if (written.empty()) return {};
  const auto found = choice(written);
  if (!found)
    return fail(ErrorKind::usage, "{}: expected {}; got '{}'", option, known, clip(written));
  to = *found;
  return {};
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

/// The options of the document, except where the command line has others.
Result<fleet::Options> options_of(const PlanOptions& given, fleet::Options options) {
  BERTH_TRY(
      choose("--model", given.model, fleet::queue_model, "calibrated or reference", options.model));
  BERTH_TRY(choose("--solver", given.solver, fleet::solver, "optimal, greedy or unlimited",
                   options.solver));
  BERTH_TRY(choose("--saturation", given.saturation, fleet::saturation,
                   "None, PriorityExhaustive, PriorityRoundRobin or RoundRobin",
                   options.saturation));
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
Result<fleet::Execution> means_of(os::Env& env, const PlanOptions& given) {
  auto means = planning_execution(given.percentiles);
  if (given.time_limit.empty()) return means;
  const auto limit = parse_duration(given.time_limit);
  if (!limit) return fail(ErrorKind::usage, "--time-limit: {}", limit.error().message);
  means.stop = [&env, until = env.now() + *limit] { return env.now() >= until; };
  means.iteration_limit = INT64_MAX / 2;
  return means;
}

std::string accelerators_text(const fleet::Assignment& planned) {
  const auto& allocation = planned.allocation;
  return (allocation.accelerator.empty() ? "-" : accelerators_of(allocation)) +
         (planned.is_spot ? " (spot)" : "");
}

/// What every server gets, in 80 columns.
std::string servers_text(const fleet::System& system, const fleet::Plan& plan) {
  render::Table table(
      {"server", "accelerator", "replicas", "cost", "TTFT/SLO ms", "ITL/SLO ms", "change"});
  std::string notes;
  for (const auto& [name, planned] : plan.servers) {
    const fleet::Server& server = system.servers.at(name);
    const fleet::Target target = fleet::target_of(system, server);
    const auto& allocation = planned.allocation;
    const bool is_given = !allocation.accelerator.empty();
    table.add({name, accelerators_text(planned), replicas_of(allocation), figure(allocation.cost),
               is_given ? short_against(allocation.ttft_ms, target.ttft_ms) : "-",
               is_given ? short_against(allocation.itl_ms, target.itl_ms) : "-",
               short_change(server.current, allocation)});
    if (!is_given || planned.reason.contains(';'))
      notes += fmt::format("{}: {}\n", name, planned.reason);
  }
  return render::to_text(table) + notes;
}

/// The cost of the plan, and how it differs from the current allocations.
std::string cost_text(const fleet::System& system, const fleet::Plan& plan) {
  double before = 0;
  std::size_t added = 0, removed = 0, changed = 0;
  for (const auto& [name, planned] : plan.servers) {
    const fleet::Allocation& current = system.servers.at(name).current;
    before += current.cost;
    const auto now = fleet::in_words(planned.allocation), was = fleet::in_words(current);
    if (now == was) continue;
    ++(was.empty() ? added : now.empty() ? removed : changed);
  }
  std::vector<std::string> changes;
  for (const auto& [count, what] :
       {std::pair(added, "started"), {changed, "changed"}, {removed, "stopped"}})
    if (count > 0) changes.push_back(fmt::format("{} {}", count, what));
  return fmt::format("\nCost: {} cents an hour ({:+.2f}). Servers: {}.\n", figure(plan.cost),
                     plan.cost - before, changes.empty() ? "no changes" : join(changes, ", "));
}

/// All that the plan says of every server: --wide.
std::string wide_servers_text(const fleet::System& system, const fleet::Plan& plan) {
  render::Table table({"server", "class", "accelerator", "replicas", "batch", "cost",
                       "ITL / SLO ms", "TTFT / SLO ms", "use", "W", "change", "why"});
  for (const auto& [name, a] : plan.servers) {
    const fleet::Server& server = system.servers.at(name);
    const fleet::Target target = fleet::target_of(system, server);
    const auto& allocation = a.allocation;
    const bool is_given = !allocation.accelerator.empty();
    table.add({name, server.service_class.empty() ? "Free" : server.service_class,
               accelerators_text(a), replicas_of(allocation), is_given ? batch_of(allocation) : "-",
               figure(allocation.cost), is_given ? against(allocation.itl_ms, target.itl_ms) : "-",
               is_given ? against(allocation.ttft_ms, target.ttft_ms) : "-",
               is_given ? fmt::format("{:.0f} %", 100 * allocation.utilisation) : "-",
               watts_text(a.watts), change_of(server.current, allocation), a.reason});
  }
  return render::to_text(table);
}

/// A line for each accelerator of a server whose targets have percentiles, and how they came about.
std::string tails_text(const fleet::System& system, const fleet::Plan& plan) {
  render::Table table({"server", "accelerator", "expected / SLO ms (closed form)"});
  for (const auto& [name, a] : plan.servers) {
    const fleet::Percentiles targets =
        fleet::target_of(system, system.servers.at(name)).percentiles;
    if (targets == fleet::Percentiles{}) continue;
    std::vector<fleet::Allocation> parts = a.allocation.parts;
    if (parts.empty()) parts.push_back(a.allocation);
    for (const auto& part : parts)
      if (part.percentiles)
        table.add({name, fleet::with_role(part.accelerator, part.role),
                   percentiles_text(*part.percentiles, fleet::targets_of(targets, part.role))});
  }
  return table.empty() ? "" : "\n" + render::to_text(table);
}

/// How the limits of targets for percentiles came about; "": there are none.
std::string limits_text(const fleet::Candidates& all) {
  auto asked = std::ranges::count_if(all.all, &fleet::Candidate::is_rate_asked_for);
  for (const auto& pools : all.pools)
    asked += std::ranges::count_if(pools, &fleet::Candidate::is_rate_asked_for);
  if (all.stopped) return "because of the time limit, some limits are from the closed form\n";
  if (asked == 0) return "";
  return fmt::format(
      "limits of {} candidate{} by simulation, within 3 %; --percentiles closed-form is faster\n",
      asked, asked == 1 ? "" : "s");
}

/// Which servers' lengths are those of a histogram.
std::string lengths_text(const fleet::System& system) {
  std::vector<std::string> servers;
  for (const auto& [name, server] : system.servers)
    if (has_histogram(server.current.load, system.options.model)) servers.push_back(name);
  return histograms_text(servers);
}

/// How near the plan is to the best one. What the solver minimizes is the cost and the penalty for
/// changes.
std::string optimality_text(const fleet::Proof& proof) {
  const std::string stopped = proof.stopped ? "; stopped by the time limit" : "";
  constexpr double kShown = 5e-7;  // less is 0.0000 %
  if (proof.gap < kShown) return fmt::format("No plan is better by cost and changes{}.\n", stopped);
  return fmt::format("At most {:.4f} % from the best plan by cost and changes{}.\n",
                     100 * proof.gap, stopped);
}

std::string summary_text(const fleet::Plan& plan) {
  std::string text;
  render::Table table({"type", "used", "of", "cost", "value of one more"});
  for (const auto& total : plan.totals) {
    table.add({total.type, fmt::format("{}", total.used),
               total.limit ? fmt::format("{}", *total.limit) : "-", figure(total.cost),
               total.shadow_price > 0 ? figure(total.shadow_price) : "-"});
    for (const auto& [kind, bought] : total.purchases)
      table.add({"  " + std::string(fleet::name(kind)), fmt::format("{}", bought.used),
                 fmt::format("{}", bought.limit), figure(bought.cost),
                 bought.shadow_price > 0 ? figure(bought.shadow_price) : "-"});
  }
  if (!table.empty()) text += "\n" + render::to_text(table);
  const fleet::Proof& proof = plan.proof;
  text += "\n" + optimality_text(proof);
  if (plan.watts > 0 || plan.power)
    text += fmt::format(
        "Power: {}{} W by the power curves{}.\n", figure(plan.watts, 0),
        plan.power ? " of " + figure(plan.power->limit_w, 0) : "",
        plan.power && plan.power->shadow_price > 0
            ? fmt::format("; one more kW saves {}", figure(1000 * plan.power->shadow_price))
            : "");
  for (const auto& [priority, count] : proof.unserved)
    if (count > 0)
      text += fmt::format("priority {}: {} not served, at least {} in any plan\n", priority, count,
                          proof.unserved_bound.at(priority));
  return text;
}

struct Range {
  Setting setting;
  double first = 0, last = 0, step = 0;
};

Result<Range> range_of(const std::string& text) {
  Range range;
  BERTH_ASSIGN(range.setting, setting_of("--sweep", text));
  std::vector<double> numbers;
  std::string_view rest = range.setting.value;
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
  range.first = numbers[0], range.last = numbers[1], range.step = numbers[2];
  return range;
}

bool leaves_unserved(const fleet::Proof& proof) {
  return std::ranges::any_of(proof.unserved, [](const auto& of) { return of.second > 0; });
}

Result<int> sweep(fleet::System system, const fleet::Execution& means, const PlanOptions& given) {
  BERTH_ASSIGN(const Range range, range_of(given.sweep));
  const std::string path = lower(range.setting.path);
  const bool only_limits = path.starts_with("capacity.") || path.starts_with("optimizer.");
  auto made = fleet::candidates(system, system.options.model, means);
  std::vector<SweepStep> steps;
  bool unserved = false;
  for (int i = 0; range.first + i * range.step <= range.last + 1e-9 * range.step; ++i) {
    const double value = range.first + i * range.step;
    BERTH_TRY(set_fleet_value("--sweep", system, range.setting.path, value));
    if (i == 0) print_fleet_notes(system);
    if (!only_limits) made = fleet::candidates(system, system.options.model, means);
    const auto plan = fleet::solve(system, made, system.options, means);
    steps.push_back({value, plan.cost, plan.proof.value, plan.proof.gap, plan.proof.unserved});
    unserved |= leaves_unserved(plan.proof);
  }
  const int code = given.fail_unserved && unserved ? 1 : 0;
  if (given.json) {
    print(sweep_json(range.setting.path, steps));
    return code;
  }
  render::Table table({range.setting.path, "cost", "value", "gap", "unserved"});
  for (const auto& step : steps) {
    std::vector<std::string> without;
    for (const auto& [priority, count] : step.unserved)
      if (count > 0) without.push_back(fmt::format("{} of priority {}", count, priority));
    table.add({format_number(step.at), figure(step.cost), figure(step.value),
               fmt::format("{:.4f} %", 100 * step.gap),
               without.empty() ? "none" : join(without, ", ")});
  }
  print(table);
  return code;
}

/// What keeps each server on one accelerator though the options ask otherwise.
std::vector<std::string> notes_on_pairs(const fleet::System& system) {
  const fleet::Options& options = system.options;
  const bool is_greedy = options.solver == fleet::Solver::greedy;
  std::vector<std::string> notes;
  if (is_greedy && options.heterogeneous)
    notes.emplace_back("the greedy solver gives each server one accelerator");
  if (is_greedy && options.disaggregated)
    notes.emplace_back("the greedy solver keeps prefill and decode together");
  const auto can_send = [](const auto& performance) {
    return performance.second.transfer.has_value();
  };
  if (options.disaggregated && std::ranges::none_of(system.models, [&](const auto& model) {
        return std::ranges::any_of(model.second.accelerators, can_send);
      }))
    notes.emplace_back(
        "prefill and decode stay together: no perfParms say what the transfer of a prompt's cache "
        "takes, such as \"transfer\": {\"fixed\": 3, \"perToken\": 0.01} in ms");
  return notes;
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

Result<std::vector<engine::StartedRun>> start(os::Env& env, const fleet::System& system,
                                              const fleet::Plan& plan, const StartChoices& given) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  std::vector<std::string> notes;
  auto started = engine::start_plan(context, system, plan, given.clusters,
                                    [&](const std::string& note) { notes.push_back(note); });
  print_notes(notes);
  return started;
}

Result<int> plan(os::Env& env, const PlanOptions& given) {
  BERTH_TRY(given.day.wanted() ? check_day_goes_with(given) : check_no_day(given.day));
  BERTH_TRY(given.manifests.read());
  const bool only_candidates = given.candidates && !given.json;
  BERTH_TRY(given.start.check());
  if ((given.manifests.wanted() || given.start.wanted) &&
      (given.day.wanted() || !given.sweep.empty() || only_candidates))
    return fail(ErrorKind::usage, "{}: of one plan, not of a day, a sweep or --candidates",
                given.start.wanted ? "--start" : "--manifests");
  BERTH_ASSIGN(const auto documents, fleet_documents(env, given.path));
  BERTH_ASSIGN(auto reading, fleet::read_documents(documents));
  print_notes(reading.notes);
  fleet::System& system = reading.system;
  BERTH_TRY(set_fleet_values(system, given.sets));
  BERTH_ASSIGN(system.options, options_of(given, system.options));
  if (auto status = check(system); !status)
    return fail(ErrorKind::usage, "{}", status.error().message);
  const fleet::Options& options = system.options;
  print_percentiles_note(system, options.model);
  if (!given.day.wanted()) print_notes(notes_on_pairs(system));
  BERTH_ASSIGN(const auto means, means_of(env, given));
  if (given.day.wanted()) {
    print_fleet_notes(system);
    return plan_and_print_day(env, system, given.day, means, given.json, given.fail_unserved);
  }
  if (!given.sweep.empty()) return sweep(std::move(system), means, given);
  print_fleet_notes(system);
  const auto made = fleet::candidates(system, options.model, means);
  if (only_candidates) print(candidates_text(system, made));
  if (only_candidates && !given.fail_unserved) return 0;
  const auto solved = fleet::solve(system, made, options, means);
  std::vector<fleet::Manifest> written;
  if (given.manifests.wanted()) {
    BERTH_ASSIGN(written, write_manifests(env, system, solved, given.manifests));
  }
  std::vector<engine::StartedRun> started;
  if (given.start.wanted) {
    BERTH_ASSIGN(started, start(env, system, solved, given.start));
  }
  if (given.json) {
    auto json = fleet::plan_json(solved, given.candidates ? &made : nullptr,
                                 given.manifests.wanted() ? &written : nullptr);
    json.insert(json.rfind('}'), ",\"servers\":" + servers_json(system, solved));
    print((given.start.wanted ? started_json(started, json) : json) + "\n");
  } else if (!only_candidates) {
    print((given.wide ? wide_servers_text(system, solved) : servers_text(system, solved)) +
          cost_text(system, solved) + tails_text(system, solved) + limits_text(made) +
          lengths_text(system) + summary_text(solved) + manifests_text(written, given.manifests) +
          started_text(started));
  }
  return given.fail_unserved && leaves_unserved(solved.proof) ? 1 : 0;
}

}  // namespace

Command plan_command() {
  return command("plan", "Plan accelerators and replicas for a fleet of LLM servers", plan);
}

}  // namespace berth::cli
