// berth, berth runs, berth show, berth best: the runs and their results.
#include "berth/render/runs/runs.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/commands/explain.h"
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/output.h"
#include "berth/engine/context.h"
#include "berth/engine/queries/flow_steps.h"
#include "berth/engine/queries/queries.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/run_state.h"
#include "berth/render/runs/flow_graph.h"
#include "berth/render/runs/trials.h"

namespace berth::cli {
namespace {

struct OverviewOptions {
  Output output;

  void add_to(Options& options) { output.add_to(options); }
};

struct RunsOptions {
  Output output;
  std::vector<std::string> labels;

  void add_to(Options& options) {
    output.add_to(options);
    options.list("--label", labels, "List only runs with this label (team) or value (team=vision)")
        .one_at_a_time()
        .named("NAME[=VALUE]");
    options.example("berth runs --label team=vision");
  }
};

struct ShowOptions {
  Output output;
  bool csv = false, raw = false, summary = false;
  std::string run, sort, since;
  std::optional<std::string> graph, chart;

  void add_to(Options& options) {
    output.add_to(options);
    add_run_or_last(options, run);
    options.group("What to show");
    options.flag("--summary", summary, "Show the run without its tasks");
    options
        .value("--graph", graph,
               "Show the steps of a flow and their dependencies, as text or for Graphviz (dot)")
        .count(0, 1)
        .one_of({"text", "dot"})
        .named("[text|dot]")
        .excludes("--summary");
    options
        .value("--chart", chart,
               "Chart a search: best value so far (history), learning curves of the leading trials "
               "(curves), or the effect of a parameter (its name); default: all")
        .count(0, 1)
        .named("[history|curves|PARAMETER]")
        .excludes("--graph");
    options
        .value("--sort", sort,
               "Sort by task, time, state, or a parameter or metric (default: the goal)")
        .named("NAME");
    options.group("Output");
    options.flag("--csv", csv, "Print one CSV line per task, for a spreadsheet or pandas")
        .excludes("--graph")
        .excludes("--summary")
        .excludes("--chart");
    options.flag(
        "--raw", raw,
        "With --csv: do not escape cells that a spreadsheet would run as a formula (=1+1), "
        "nor control characters");
    options
        .value("--changed-since", since,
               "With --csv or --json: omit tasks that ended before this time, such as "
               "2026-11-25T16:41:36Z")
        .named("TIME");
    options.footer(
        "Examples:\n"
        "  berth show                       the latest run\n"
        "  berth show digits-3 --chart lr");
  }
};

struct BestOptions {
  Output output;
  std::string run;

  void add_to(Options& options) {
    output.add_to(options);
    add_run_or_last(options, run);
    options.example("berth best digits-3 --json");
  }
};

constexpr const char* kNothingYet =
    "Nothing has run yet. Try: berth run examples/digits/sweep.yaml\n";

Result<int> overview(os::Env& env, const OverviewOptions& options) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(auto runs, engine::list_runs(context, false));
  const std::size_t all = runs.size();
  std::erase_if(runs, [](const auto& run) { return !engine::is_under_way(run.state); });
  options.output.print(render::RunList{
      .runs = std::move(runs),
      .now = env.wall(),
      .if_empty = all == 0 ? kNothingYet : "Nothing is running. Earlier runs: berth runs\n"});
  return 0;
}

Result<int> list_runs(os::Env& env, const RunsOptions& options) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(auto runs,
               engine::list_runs(context, options.output.is_json() || !options.labels.empty()));
  for (const auto& label : options.labels)
    std::erase_if(
        runs, [&](const engine::ShownRun& run) { return !exec::fits_label(label, *run.labels); });
  std::string if_empty = kNothingYet;
  if (!options.labels.empty())
    if_empty = fmt::format("No run has the label {}.\n", join(options.labels, " and "));
  options.output.print(render::RunList{std::move(runs), env.wall(), std::move(if_empty)});
  return 0;
}

constexpr std::size_t kLeadingCurves = 5, kMostCurves = 100;

Result<std::string> charts_of(engine::Context& context, const engine::RunDetails& run,
                              const std::string& wanted) {
  const auto& [record, tasks, program] = std::tie(run.shown.record, run.tasks, run.program);
  if (!program.goal) return fail(ErrorKind::invalid, "{} has no goal to draw", record.name);
  const auto parameters = engine::parameter_names(engine::in_turn(tasks));
  const bool is_parameter = std::ranges::find(parameters, wanted) != parameters.end();
  if (!wanted.empty() && wanted != "history" && wanted != "curves" && !is_parameter)
    return fail(ErrorKind::invalid, "--chart: no parameter is called '{}'; the parameters are {}",
                clip(wanted), clip(join(parameters, ", "), 400));
  std::vector<std::string> charts;
  if (wanted.empty() || wanted == "history") charts.push_back(render::score_chart(tasks, program));
  if (wanted.empty() || wanted == "curves") {
    BERTH_ASSIGN(const auto curves, engine::leading_curves(context, run, kLeadingCurves));
    charts.push_back(render::curve_chart(curves, program));
  }
  for (const auto& parameter : parameters)
    if (wanted.empty() || wanted == parameter)
      charts.push_back(render::scatter_chart(tasks, program, parameter));
  std::erase(charts, "");
  if (charts.empty())
    return fail(ErrorKind::busy, "{}: too few trials have finished with a value of {} to draw that",
                record.name, program.goal->metric);
  return join(charts, "\n");
}

Result<int> show(os::Env& env, const ShowOptions& options) {
  if (!engine::parse_task_path(options.run).task.empty())
    return explain(env, options.run, options.output);
  const bool is_json = options.output.is_json();
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(const auto run,
               engine::details_of(context, options.run,
                                  {.tasks = !is_json || !options.summary || options.chart,
                                   .most_failures = is_json ? render::kMostRows : 0}));
  const auto& [shown, program, tasks] = run;
  const auto& record = shown.record;
  if (options.graph) {
    if (record.kind != "flow")
      return fail(ErrorKind::usage, "{} is not a flow: it has no graph", record.name);
    BERTH_ASSIGN(const auto flow, engine::flow_of(record));
    const auto steps = engine::step_counts(flow, record, tasks);
    options.output.print(render::FlowGraph{flow, steps, tasks, *options.graph == "dot"});
    return 0;
  }
  if (options.chart && is_json && *options.chart == "curves") {
    BERTH_ASSIGN(const auto curves, engine::curves_of(context, run, kMostCurves));
    print(render::curves_json(run.program, curves));
    return 0;
  }
  if (options.chart) {
    BERTH_ASSIGN(const auto charts, charts_of(context, run, *options.chart));
    print(charts);
    return 0;
  }
  engine::Order order =
      is_json || options.csv ? engine::in_turn(tasks) : engine::sorted_trials(tasks, program);
  if (!options.sort.empty()) {
    BERTH_ASSIGN(order, engine::sorted_trials(tasks, program, options.sort));
  }
  const engine::Order all = order;
  if (options.summary) order.clear();
  if (!options.since.empty()) {
    BERTH_ASSIGN(const Wall since, parse_utc(options.since));
    std::erase_if(order, [&](const auto* task) {
      return store::final(task->state) && task->ended && *task->ended < since;
    });
  }
  if (options.csv) {
    const std::string csv = render::trials_csv(record, order, options.raw);
    options.raw ? print_exact(csv) : print(csv);
    return 0;
  }
  options.output.print(render::RunView{run, order, all, !options.summary});
  return 0;
}

Result<int> show_best(os::Env& env, const BestOptions& options) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(const auto best, engine::best_of(context, options.run));
  options.output.print(best);
  return 0;
}

}  // namespace

Command overview_command() {
  return command("", "", overview).alias("ps");
}

Command runs_command() {
  return command("runs", "List runs, oldest first", list_runs).alias("ls");
}

Command show_command() {
  return command("show", "Show a run and its tasks", show);
}

Command best_command() {
  return command("best", "Show the best trial of a search", show_best);
}

}  // namespace berth::cli
