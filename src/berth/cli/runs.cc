// berth, berth runs, berth show, berth best: what there is.
#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/explain.h"
#include "berth/cli/flow_view.h"
#include "berth/cli/json_output.h"
#include "berth/cli/print.h"
#include "berth/cli/run_view.h"
#include "berth/cli/shared_options.h"
#include "berth/cli/table.h"
#include "berth/cli/trials_view.h"
#include "berth/run/find_run.h"
#include "berth/run/run_labels.h"

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

Result<std::vector<ShownRun>> shown_runs(os::Env& env, run::Context& context) {
  BERTH_ASSIGN(auto records, context.store->runs());
  std::vector<ShownRun> runs;
  for (auto& record : records) {
    std::string state = state_now(env, record);
    runs.push_back({std::move(record), std::move(state)});
  }
  return runs;
}

Table runs_table(const std::vector<ShownRun>& runs, Wall now) {
  Table table({"run", "state", "tasks", "age", "took"});
  for (const auto& run : runs) {
    const auto& record = run.record;
    const bool timed = record.started && record.ended;
    table.add({record.name, run.state, counts_text(record.counts),
               format_duration(now - record.created),
               timed ? format_duration(*record.ended - *record.started) : "-"});
  }
  return table;
}

/// "held 12.4 core-minutes, 3.1 GiB-minutes of mem": "" before anything has ended.
std::string usage_line(const std::vector<store::Usage>& used) {
  std::vector<std::string> parts;
  for (const auto& [name, minutes] : resource_minutes(used)) {
    const bool bytes = measure(name) == Measure::bytes;
    parts.push_back(name == "cpu" ? fmt::format("{:.3g} core-minutes", minutes)
                    : bytes ? fmt::format("{:.3g} GiB-minutes of {}", minutes / (1 << 30), name)
                            : fmt::format("{:.3g} {}-minutes", minutes, name));
  }
  return parts.empty() ? "" : "used " + join(parts, ", ");
}

/// What was asked for, and what the run is called by.
std::string asked_line(const store::RunRecord& record) {
  const auto asked = run::invocation_of(record);
  std::string text = "program " + clip(asked.program, 200);
  for (const auto& argument : asked.arguments) text += " " + clip(shell_quote(argument), 200);
  if (const auto labels = exec::to_text(run::labels_of(record)); !labels.empty())
    text += "\nlabels " + labels;
  return text + "\n";
}

Result<int> overview(os::Env& env, const OverviewOptions& options) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_ASSIGN(auto runs, shown_runs(env, context));
  const std::size_t all = runs.size();
  std::erase_if(runs, [](const auto& run) { return !is_under_way(run.state); });
  if (options.json) {
    print(runs_json(runs));
  } else if (runs.empty()) {
    print(all == 0 ? "Nothing has run yet. Try: berth run examples/digits/sweep.yaml\n"
                   : "Nothing is running. Earlier runs: berth runs\n");
  } else {
    print(runs_table(runs, env.wall()));
  }
  return 0;
}

Result<int> list_runs(os::Env& env, const RunsOptions& options) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_ASSIGN(auto runs, shown_runs(env, context));
  if (options.json || !options.labels.empty())
    for (auto& run : runs) {  // a list of runs comes without what they were submitted with
      const auto whole = context.store->find_run(run.record.name);
      run.labels = whole ? run::labels_of(*whole) : exec::Labels();
    }
  for (const auto& label : options.labels)
    std::erase_if(runs, [&](const ShownRun& run) { return !exec::fits_label(label, *run.labels); });
  if (options.json)
    print(runs_json(runs));
  else if (runs.empty() && !options.labels.empty())
    print(fmt::format("No run has the label {}.\n", join(options.labels, " and ")));
  else if (runs.empty())
    print("Nothing has run yet. Try: berth run examples/digits/sweep.yaml\n");
  else
    print(runs_table(runs, env.wall()));
  return 0;
}

/// Of a trial that several budgets were given to, the last.
Result<std::vector<Curve>> curves_of(run::Context& context, const store::RunRecord& record,
                                     const Order& trials, const experiment::Program& program) {
  std::vector<Curve> curves;
  for (const auto* task : trials) {
    Curve curve{.label = task->label, .values = {}};
    BERTH_ASSIGN(const auto metrics, context.store->metrics(record.id, task->number));
    for (const auto& metric : metrics)
      if (metric.token == task->token && metric.name == program.goal->metric)
        curve.values.push_back(metric.value);
    curves.push_back(std::move(curve));
  }
  return curves;
}

/// Those of the trials with the best scores.
Result<std::vector<Curve>> leading_curves(run::Context& context, const store::RunRecord& record,
                                          const std::vector<store::TaskRecord>& tasks,
                                          const experiment::Program& program) {
  constexpr std::size_t kLeadingCurves = 5;
  Order leading = sorted_trials(tasks, program);
  const auto unscored = std::ranges::find_if(
      leading, [&](const auto* task) { return !score_of(*task, program).has_value(); });
  leading.erase(std::min(unscored, leading.begin() + std::min(std::ssize(leading),
                                                              std::ptrdiff_t(kLeadingCurves))),
                leading.end());
  return curves_of(context, record, leading, program);
}

/// The curves of the best trials, and of those that were stopped early the latest, with how each
/// ended.
Result<std::string> curves_json(run::Context& context, const store::RunRecord& record,
                                const std::vector<store::TaskRecord>& tasks,
                                const experiment::Program& program) {
  constexpr std::size_t kMostOfEach = 100;
  if (!program.goal) return fail(ErrorKind::invalid, "{} has no goal to draw", record.name);
  Order shown, cut;
  for (const auto* task : sorted_trials(tasks, program)) {
    const bool is_cut = task->cause == exec::Cause::stopped_early;
    if (!is_cut && shown.size() < kMostOfEach) shown.push_back(task);
    if (is_cut) cut.push_back(task);
  }
  std::ranges::sort(cut, std::greater{}, [](const auto* task) { return task->number.value; });
  shown.insert(shown.end(), cut.begin(),
               cut.begin() + std::min(std::ssize(cut), std::ptrdiff_t(kMostOfEach)));
  BERTH_ASSIGN(const auto curves, curves_of(context, record, shown, program));
  JsonWriter json;
  json.object().add("version", 1).add("metric", program.goal->metric);
  json.add("direction", program.goal->maximize ? "max" : "min").key("curves").array();
  for (std::size_t i = 0; i < curves.size(); ++i) {
    if (curves[i].values.empty()) continue;
    json.object().add("task", curves[i].label);
    json.add("stopped_early", shown[i]->cause == exec::Cause::stopped_early);
    json.key("values").list(curves[i].values).end();
  }
  return json.end().end().take() + "\n";
}

Result<std::string> charts_of(run::Context& context, const store::RunRecord& record,
                              const std::vector<store::TaskRecord>& tasks,
                              const experiment::Program& program, const std::string& wanted) {
  if (!program.goal) return fail(ErrorKind::invalid, "{} has no goal to draw", record.name);
  const auto parameters = parameter_names(in_turn(tasks));
  const bool is_parameter = std::ranges::find(parameters, wanted) != parameters.end();
  if (!wanted.empty() && wanted != "history" && wanted != "curves" && !is_parameter)
    return fail(ErrorKind::invalid, "--chart: no parameter is called '{}'; the parameters are {}",
                clip(wanted), clip(join(parameters, ", "), 400));
  std::vector<std::string> charts;
  if (wanted.empty() || wanted == "history") charts.push_back(score_chart(tasks, program));
  if (wanted.empty() || wanted == "curves") {
    BERTH_ASSIGN(const auto curves, leading_curves(context, record, tasks, program));
    charts.push_back(curve_chart(curves, program));
  }
  for (const auto& parameter : parameters)
    if (wanted.empty() || wanted == parameter)
      charts.push_back(scatter_chart(tasks, program, parameter));
  std::erase(charts, "");
  if (charts.empty())
    return fail(ErrorKind::busy, "{}: too few trials have finished with a value of {} to draw that",
                record.name, program.goal->metric);
  return join(charts, "\n");
}

/// Those that failed, and the front of several goals. Else not one of a hundred thousand is read.
bool has_tasks_in_its_summary(const store::RunRecord& record) {
  const auto program = program_of(record);
  return record.counts.failed > 0 || !program || !program->further_goals.empty();
}

Result<int> show(os::Env& env, const ShowOptions& options) {
  if (!parse_task_path(options.run).task.empty()) return explain(env, options.run, options.json);
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_ASSIGN(const auto record, run::find_run(context, options.run));
  std::vector<store::TaskRecord> tasks;
  if (!options.json || !options.summary || options.chart || has_tasks_in_its_summary(record)) {
    BERTH_ASSIGN(tasks, context.store->tasks(record.id));
  }
  BERTH_ASSIGN(auto used, context.store->usage(record.id));
  ShownRun shown{record, state_now(env, record), std::move(used)};
  if (options.json) {
    BERTH_ASSIGN(shown.failures, failures_of(context, record, tasks, kMostRows));
  }
  if (options.graph) {
    if (record.kind != "flow")
      return fail(ErrorKind::usage, "{} is not a flow: it has no graph", record.name);
    BERTH_ASSIGN(const auto flow, flow_of(record));
    const auto steps = step_counts(flow, record, tasks);
    print(options.json              ? graph_json(flow, steps, tasks)
          : *options.graph == "dot" ? graph_dot(flow, steps)
                                    : graph_text(flow, steps));
    return 0;
  }
  BERTH_ASSIGN(const auto program, program_of(record));
  if (options.chart) {
    const bool wants_json = options.json && *options.chart == "curves";
    BERTH_ASSIGN(const auto charts,
                 wants_json ? curves_json(context, record, tasks, program)
                            : charts_of(context, record, tasks, program, *options.chart));
    print(charts);
    return 0;
  }
  Order order = options.json || options.csv ? in_turn(tasks) : sorted_trials(tasks, program);
  if (!options.sort.empty()) {
    BERTH_ASSIGN(order, sorted_trials(tasks, program, options.sort));
  }
  const Order all = order;
  if (options.summary) order.clear();
  if (!options.since.empty()) {
    BERTH_ASSIGN(const Wall since, parse_utc(options.since));
    std::erase_if(order, [&](const auto* task) {
      return store::final(task->state) && task->ended && *task->ended < since;
    });
  }
  if (options.csv || options.json) {
    if (!options.csv)
      print(show_json(shown, order, &all));
    else if (options.raw)
      print_exact(trials_csv(record, order, true));
    else
      print(trials_csv(record, order, false));
    return 0;
  }
  if (!options.summary) print(trials_table(order, program, 0));
  if (const std::string chart = score_chart(tasks, program); !chart.empty())
    print("\n" + chart + "\n");
  print_state_line(record, shown.state);
  print(best_text(record, tasks, program));
  if (const std::string held = usage_line(shown.used); !held.empty()) print(held + "\n");
  print(asked_line(record));
  if (shown.state == "interrupted")
    print(fmt::format("{}resume it with: berth resume {}\n",
                      record.error.empty() ? "its runner died; " : "", record.name));
  return 0;
}

Result<int> show_best(os::Env& env, const BestOptions& options) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_ASSIGN(const auto record, run::find_run(context, options.run));
  BERTH_ASSIGN(const auto program, program_of(record));
  BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
  if (!program.goal) return fail(ErrorKind::invalid, "{}", no_goal_text(record, tasks));
  const auto* best = best_task(tasks, program);
  const bool infeasible = best == nullptr && std::ranges::any_of(tasks, [&](const auto& task) {
                            return task.state == store::TaskState::done &&
                                   experiment::score(*program.goal, task.metrics);
                          });
  if (infeasible)
    return fail(ErrorKind::busy, "{}: no finished trial meets all constraints yet", record.name);
  if (best == nullptr)
    return fail(ErrorKind::busy, "{}: no trial has finished with a value of {} yet", record.name,
                program.goal->metric);
  if (options.json) {
    print(task_json(record, *best, program));
    return 0;
  }
  print(best_line(record, *best, program));
  const Order front = front_of(sorted_trials(tasks, program), program);
  if (!front.empty())
    print("\nthe Pareto front (no trial is better in all goals):\n" +
          trials_table(front, program, 0).text());
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
