// berth plan: how many of which accelerator a fleet of inference servers needs, and why.
#include "berth/render/fleets/plan.h"
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/output.h"
#include "berth/engine/fleets/plan_choices.h"
#include "berth/render/fleets/day.h"

namespace berth::cli {
namespace {

void add_day(Options& options, engine::DayChoices& to) {
  options
      .value("--profile", to.profile,
             "Loads over a day (CSV): time,server,arrivalRate[,avgInTokens,avgOutTokens]")
      .named("FILE");
  options.value("--trace", to.trace, "Requests of a day (CSV): seconds,in_tokens,out_tokens")
      .named("FILE")
      .excludes("--profile");
  options.flag("--replay", to.replay, "Simulate the requests of the trace under each plan");
  options.value("--window", to.window, "Plan the trace in windows of this length (default: 10m)")
      .named("DURATION")
      .excludes("--profile");
  options
      .value("--server", to.server,
             "Send the whole trace to this server (default: split by arrivalRate)")
      .named("NAME")
      .excludes("--profile");
  options
      .value("--transition-cost", to.transition_cost,
             "Cost of each start or stop of a replica: cents, or its price for a time (5m)")
      .named("COST");
  options.value("--startup", to.startup, "Time a replica costs before it serves").named("DURATION");
  options.value("--min-up", to.min_up, "After a start, keep all replicas of the server this long")
      .named("DURATION");
  options
      .value("--hysteresis", to.hysteresis,
             "With greedy: move only to save more than this fraction (0 to 1)")
      .named("FRACTION");
}

void add_manifests(Options& options, engine::ManifestChoices& to) {
  options
      .value("--manifests", to.directory,
             "Write the planned servers as Kubernetes YAML into this directory, one file each")
      .named("DIR");
  options
      .value("--scaler", to.scaler,
             "With --manifests: scale by wva_desired_replicas with hpa (default), keda or none")
      .named("SCALER")
      .one_of({"hpa", "keda", "none"});
  options.value("--namespace", to.kubernetes_namespace, "With --manifests: Kubernetes namespace")
      .named("NAME");
  options.value("--prometheus", to.prometheus, "With --scaler keda: Prometheus server to query")
      .named("URL");
}

void add_start(Options& options, engine::PlanChoices& to) {
  options
      .flag("--start", to.starts,
            "Start the planned servers, one background run each; end one with berth stop")
      .excludes("--manifests");
  options
      .list("--on", to.clusters,
            "With --start: run on these clusters (default: this machine); see berth cluster list")
      .split_at(',')
      .one_at_a_time()
      .named("CLUSTER");
}

struct PlanOptions {
  Output output;
  std::string path;
  engine::PlanChoices choices;
  bool fail_unserved = false, wide = false;

  void add_to(Options& options) {
    output.add_to(options);
    add_fleet(options, path);
    options.group("Planning");
    options.value("--solver", choices.solver, "optimal (default), greedy or unlimited")
        .named("SOLVER");
    options.value("--model", choices.model, "Performance model: calibrated (default) or reference")
        .named("MODEL");
    add_percentiles(options, choices.percentiles);
    options
        .value("--saturation", choices.saturation,
               "With greedy: None, PriorityExhaustive, PriorityRoundRobin or RoundRobin")
        .named("POLICY");
    options.flag("--delayed-best-effort", choices.delayed_best_effort,
                 "With greedy: serve best effort after all priorities");
    options.flag("--heterogeneous", choices.heterogeneous,
                 "Allow two accelerator types for one server (optimal, unlimited)");
    options.flag("--disaggregated", choices.disaggregated,
                 "Separate prefill and decode where that is better (optimal, unlimited)");
    options
        .value("--power-budget", choices.power_budget,
               "Limit the power of all replicas, by the power curves, such as 20kW")
        .named("POWER");
    options
        .value("--time-limit", choices.time_limit, "Stop at the best plan found so far, such as 2s")
        .named("DURATION");
    options.flag("--candidates", choices.lists_candidates,
                 "List every server on every accelerator");
    options.flag("--wide", wide, "Show all columns: class, batch, use, power, reason");
    options.flag("--fail-unserved", fail_unserved, "Exit with 1 if a server cannot be served");
    options.group("What if");
    options
        .list("--set", choices.sets,
              "Change a value: capacity.TYPE, accelerator.NAME.cost, server.NAME.arrivalRate, ...")
        .named("PATH=VALUE");
    options
        .value("--sweep", choices.sweep, "Show cost and unserved load over a range of such a value")
        .named("PATH=FIRST..LAST..STEP");
    options.group("Plan a day");
    add_day(options, choices.day);
    options.group("Deploy");
    add_manifests(options, choices.manifests);
    add_start(options, choices);
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

Result<int> plan(os::Env& env, const PlanOptions& given) {
  engine::PlanChoices choices = given.choices;
  choices.has_no_plan = choices.lists_candidates && !given.output.is_json();
  choices.is_plan_checked = given.fail_unserved;
  BERTH_TRY(engine::check_choices(choices));
  BERTH_ASSIGN(auto system, engine::read_fleet(env, given.path, print_notes));
  BERTH_ASSIGN(auto planned, engine::plan(env, std::move(system), choices, print_notes));
  if (auto* made = std::get_if<engine::FleetPlan>(&planned)) made->is_wide = given.wide;
  std::visit([&](const auto& one) { given.output.print(one); }, planned);
  return given.fail_unserved && engine::leaves_unserved(planned) ? 1 : 0;
}

}  // namespace

Command plan_command() {
  return command("plan", "Plan accelerators and replicas for a fleet of LLM servers", plan);
}

}  // namespace berth::cli
