// berth, berth runs, berth show, berth best: the runs and their results.
#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/explain.h"
#include "berth/cli/print.h"
#include "berth/cli/shared_options.h"
#include "berth/cli/state_line.h"
#include "berth/engine/context.h"
#include "berth/engine/flow_steps.h"
#include "berth/engine/queries.h"
#include "berth/engine/run_json.h"
#include "berth/engine/run_record.h"
#include "berth/engine/run_state.h"
#include "berth/engine/trials.h"
#include "berth/render/flow_graph.h"
#include "berth/render/table.h"
#include "berth/render/trials.h"

namespace berth::cli {
namespace {

struct OverviewOptions {
  bool json = false;

  void add_to(Options& options) { options.json(json); }
};

struct RunsOptions {
  bool json = false;

  std::vector<std::string> labels;

  void add_to(Options& options) {
    options.json(json);
    options.list("--label", labels, "List only runs with this label (team) or value (team=vision)")
        .one_at_a_time()
        .named("NAME[=VALUE]");
    options.example("berth runs --label team=vision");
  }
};

struct ShowOptions {
  bool json = false, csv = false, raw = false, summary = false;
  std::string run, sort, since;
  std::optional<std::string> graph, chart;

  void add_to(Options& options) {
    options.json(json);
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
  bool json = false;
  std::string run;

  void add_to(Options& options) {
    options.json(json);
    add_run_or_last(options, run);
    options.example("berth best digits-3 --json");
  }
};

render::Table runs_table(const std::vector<engine::ShownRun>& runs, Wall now) {
  render::Table table({"run", "state", "tasks", "age", "took"});
  for (const auto& run : runs) {
    const auto& record = run.record;
    const bool timed = record.started && record.ended;
    table.add({record.name, run.state, engine::counts_text(record.counts),
               format_duration(now - record.created),
               timed ? format_duration(*record.ended - *record.started) : "-"});
  }
  return table;
}

/// "held 12.4 core-minutes, 3.1 GiB-minutes of mem": "" before anything has ended.
std::string usage_line(const std::vector<store::Usage>& used) {
  std::vector<std::string> parts;
  for (const auto& [name, minutes] : engine::resource_minutes(used)) {
    const bool bytes = measure(name) == Measure::bytes;
    parts.push_back(name == "cpu" ? fmt::format("{:.3g} core-minutes", minutes)
                    : bytes ? fmt::format("{:.3g} GiB-minutes of {}", minutes / (1 << 30), name)
                            : fmt::format("{:.3g} {}-minutes", minutes, name));
  }
  return parts.empty() ? "" : "used " + join(parts, ", ");
}

/// What was asked for, and what the run is called by.
std::string asked_line(const store::RunRecord& record) {
  const auto asked = engine::asked_of(record);
  std::string text = "program " + clip(asked.program, 200);
  for (const auto& argument : asked.arguments) text += " " + clip(shell_quote(argument), 200);
  if (const auto labels = exec::to_text(asked.labels); !labels.empty())
    text += "\nlabels " + labels;
  return text + "\n";
}

Result<int> overview(os::Env& env, const OverviewOptions& options) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(auto runs, engine::list_runs(context, false));
  const std::size_t all = runs.size();
  std::erase_if(runs, [](const auto& run) { return !engine::is_under_way(run.state); });
  if (options.json) {
    print(engine::runs_json(runs));
  } else if (runs.empty()) {
    print(all == 0 ? "Nothing has run yet. Try: berth run examples/digits/sweep.yaml\n"
                   : "Nothing is running. Earlier runs: berth runs\n");
  } else {
    print(runs_table(runs, env.wall()));
  }
  return 0;
}

Result<int> list_runs(os::Env& env, const RunsOptions& options) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(auto runs, engine::list_runs(context, options.json || !options.labels.empty()));
  for (const auto& label : options.labels)
    std::erase_if(
        runs, [&](const engine::ShownRun& run) { return !exec::fits_label(label, *run.labels); });
  if (options.json)
    print(engine::runs_json(runs));
  else if (runs.empty() && !options.labels.empty())
    print(fmt::format("No run has the label {}.\n", join(options.labels, " and ")));
  else if (runs.empty())
    print("Nothing has run yet. Try: berth run examples/digits/sweep.yaml\n");
  else
    print(runs_table(runs, env.wall()));
  return 0;
}

constexpr std::size_t kLeadingCurves = 5, kMostCurves = 100;

std::string curves_json(const engine::RunDetails& run, const std::vector<engine::Curve>& curves) {
  const experiment::Goal& goal = *run.program.goal;
  JsonWriter json;
  json.object().add("version", 1).add("metric", goal.metric);
  json.add("direction", goal.maximize ? "max" : "min").key("curves").array();
  for (const auto& curve : curves) {
    if (curve.values.empty()) continue;
    json.object().add("task", curve.label).add("stopped_early", curve.stopped_early);
    json.key("values").list(curve.values).end();
  }
  return json.end().end().take() + "\n";
}

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
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(const auto run,
               engine::details_of(context, options.run,
                                  {.tasks = !options.json || !options.summary || options.chart,
                                   .most_failures = options.json ? render::kMostRows : 0}));
  const auto& [shown, program, tasks] = run;
  const auto& record = shown.record;
  if (options.graph) {
    if (record.kind != "flow")
      return fail(ErrorKind::usage, "{} is not a flow: it has no graph", record.name);
    BERTH_ASSIGN(const auto flow, engine::flow_of(record));
    const auto steps = engine::step_counts(flow, record, tasks);
    print(options.json              ? render::graph_json(flow, steps, tasks)
          : *options.graph == "dot" ? render::graph_dot(flow, steps)
                                    : render::graph_text(flow, steps));
    return 0;
  }
  if (options.chart && options.json && *options.chart == "curves") {
    BERTH_ASSIGN(const auto curves, engine::curves_of(context, run, kMostCurves));
    print(curves_json(run, curves));
    return 0;
  }
  if (options.chart) {
    BERTH_ASSIGN(const auto charts, charts_of(context, run, *options.chart));
    print(charts);
    return 0;
  }
  engine::Order order =
      options.json || options.csv ? engine::in_turn(tasks) : engine::sorted_trials(tasks, program);
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
  if (options.csv || options.json) {
    if (!options.csv)
      print(engine::show_json(shown, order, &all));
    else if (options.raw)
      print_exact(render::trials_csv(record, order, true));
    else
      print(render::trials_csv(record, order, false));
    return 0;
  }
  if (!options.summary) print(render::trials_table(order, program, 0));
  if (const std::string chart = render::score_chart(tasks, program); !chart.empty())
    print("\n" + chart + "\n");
  print_state_line(record, shown.state);
  print(engine::best_text(record, tasks, program));
  if (const std::string held = usage_line(shown.used); !held.empty()) print(held + "\n");
  print(asked_line(record));
  if (shown.state == "interrupted")
    print(fmt::format("{}resume it with: berth resume {}\n",
                      record.error.empty() ? "its runner died; " : "", record.name));
  return 0;
}

Result<int> show_best(os::Env& env, const BestOptions& options) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(const auto best, engine::best_of(context, options.run));
  if (options.json) {
    print(engine::task_json(best.record, best.task, best.program));
    return 0;
  }
  print(engine::best_line(best.record, best.task, best.program));
  if (!best.front.empty())
    print("\nthe Pareto front (no trial is better in all goals):\n" +
          render::to_text(render::trials_table(engine::in_turn(best.front), best.program, 0)));
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
