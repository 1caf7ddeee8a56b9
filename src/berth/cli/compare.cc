// berth compare: what several runs came to, side by side, by one metric.
#include <algorithm>
#include <map>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/url.h"
#include "berth/cli/json_output.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/cli/run_view.h"
#include "berth/cli/shared_options.h"
#include "berth/cli/table.h"
#include "berth/cli/trials_view.h"
#include "berth/run/find_run.h"

namespace berth::cli {
namespace {

struct CompareOptions {
  bool json = false;
  std::vector<std::string> runs;
  std::string metric, direction;

  void add_to(Options& options) {
    options.json(json);
    add_runs(options, runs, "Two or more runs, such as digits-3 digits-4").count(2, 64);
    options.value("--metric", metric, "Compare this metric (default: the metric of the goal)")
        .named("NAME");
    options.value("--direction", direction, "Best is max or min (default: as in the goal)")
        .named("DIRECTION")
        .one_of({"max", "min"});
    options.example("berth compare digits-3 digits-4 --metric loss --direction min");
  }
};

struct Loaded {
  ShownRun run;
  std::vector<store::TaskRecord> tasks;
};

/// The goal by which the runs are compared: the one that was asked for, else the one on which all
/// runs with a goal agree.
Result<experiment::Goal> common_goal(const CompareOptions& options,
                                     const std::vector<Loaded>& runs) {
  std::optional<experiment::Goal> common;
  for (const auto& each : runs) {
    BERTH_ASSIGN(const auto program, program_of(each.run.record));
    const auto& goal = program.goal;
    if (!goal) continue;
    const bool metric_agrees = !common || common->metric == goal->metric;
    const bool agrees = metric_agrees && (!common || common->maximize == goal->maximize);
    if (!agrees && (options.metric.empty() || options.direction.empty()))
      return fail(ErrorKind::invalid,
                  "{} has another goal ({} {}) than the runs before it ({} {}); choose what to "
                  "compare: --metric NAME --direction max",
                  each.run.record.name, goal->maximize ? "max" : "min", goal->metric,
                  common->maximize ? "max" : "min", common->metric);
    if (!common) common = goal;
  }
  if (!common && options.metric.empty())
    return fail(ErrorKind::invalid,
                "none of the runs has a goal; choose what to compare: --metric NAME");
  experiment::Goal goal = common.value_or(experiment::Goal{});
  if (!options.metric.empty()) goal.metric = options.metric;
  if (!options.direction.empty()) goal.maximize = options.direction == "max";
  return goal;
}

template <typename T>
std::optional<T> median(std::vector<T> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  if (values.size() % 2 == 1) return values[half];
  return values[half - 1] / 2 + values[half] / 2;
}

Comparison::Run summary(const Loaded& loaded, const experiment::Program& program) {
  const store::RunRecord& record = loaded.run.record;
  Comparison::Run summary;
  summary.run = loaded.run;
  summary.best = best_task(loaded.tasks, program);
  std::vector<double> scores;
  std::vector<Duration> times;
  for (const auto& task : loaded.tasks) {
    if (const auto score = score_of(task, program)) scores.push_back(*score);
    if (task.state == store::TaskState::done && task.started && task.ended)
      times.push_back(*task.ended - *task.started);
  }
  summary.scored = static_cast<std::int64_t>(scores.size());
  if (summary.best != nullptr) summary.score = score_of(*summary.best, program);
  summary.median = median(scores);
  summary.trial = median(times);
  if (record.started && record.ended) summary.took = *record.ended - *record.started;
  return summary;
}

/// The best score for each setting of the parameters, whatever order they stand in.
std::map<store::Values, double> by_parameters(const Loaded& loaded,
                                              const experiment::Program& program) {
  std::map<store::Values, double> found;
  for (const auto& task : loaded.tasks) {
    const auto score = score_of(task, program);
    if (!score) continue;
    store::Values params = task.params;
    std::ranges::sort(params);
    const auto [at, added] = found.emplace(std::move(params), *score);
    const bool better = program.goal->maximize ? *score > at->second : *score < at->second;
    if (better) at->second = *score;
  }
  return found;
}

std::vector<Comparison::Shared> shared_parameters(const std::vector<Loaded>& runs,
                                                  const experiment::Program& program) {
  std::vector<std::map<store::Values, double>> tried;
  for (const auto& run : runs) tried.push_back(by_parameters(run, program));
  std::vector<Comparison::Shared> shared;
  for (const auto& [params, score] : tried.front()) {
    Comparison::Shared row{params, {}};
    for (const auto& scores : tried)
      if (const auto found = scores.find(params); found != scores.end())
        row.scores.push_back(found->second);
    if (row.scores.size() == runs.size() && !params.empty()) shared.push_back(std::move(row));
  }
  std::ranges::stable_sort(shared, [&](const auto& a, const auto& b) {
    return program.goal->maximize ? a.scores[0] > b.scores[0] : a.scores[0] < b.scores[0];
  });
  return shared;
}

std::string number_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.6g}", *value) : "-";
}

std::string time_text(const std::optional<Duration>& time) {
  return time ? format_duration(*time) : "-";
}

std::string runs_side_by_side(const Comparison& comparison) {
  Table table({"run", "state", "done", "failed", "best " + comparison.metric, "trial", "median",
               "trial time", "took"});
  for (const auto& each : comparison.runs) {
    const auto& record = each.run.record;
    table.add({record.name, each.run.state, fmt::format("{}", record.counts.done),
               fmt::format("{}", record.counts.failed), number_text(each.score),
               each.best != nullptr ? each.best->label : "-", number_text(each.median),
               time_text(each.trial), time_text(each.took)});
  }
  return table.text();
}

/// The parameters of the best trials: a row each, a column a run.
std::string best_side_by_side(const Comparison& comparison) {
  Order best;
  for (const auto& each : comparison.runs)
    if (each.best != nullptr) best.push_back(each.best);
  const auto names = parameter_names(best);
  if (names.empty()) return "";
  std::vector<std::string> head{"best trial's"};
  for (const auto& each : comparison.runs) head.push_back(each.run.record.name);
  Table table(head);
  for (const auto& name : names) {
    std::vector<std::string> row{name};
    for (const auto& each : comparison.runs)
      row.push_back(each.best != nullptr ? clip(without_secrets(value_of(*each.best, name)), 32)
                                         : "-");
    table.add(std::move(row));
  }
  return "\n" + table.text();
}

std::string shared_side_by_side(const Comparison& comparison) {
  if (comparison.shared.empty()) return "";
  std::vector<store::TaskRecord> settings;  // as trials, whose parameters may differ
  for (const auto& shared : comparison.shared) settings.emplace_back().params = shared.params;
  const auto names = parameter_names(in_turn(settings));
  std::vector<std::string> head = names;
  for (const auto& each : comparison.runs) head.push_back(each.run.record.name);
  Table table(head);
  const std::size_t rows = std::min(kMostRows, comparison.shared.size());
  for (std::size_t i = 0; i < rows; ++i) {
    std::vector<std::string> row;
    for (const auto& name : names)
      row.push_back(clip(without_secrets(value_of(settings[i], name)), 32));
    for (const double score : comparison.shared[i].scores) row.push_back(number_text(score));
    table.add(std::move(row));
  }
  return fmt::format(
      "\n"
      "{} of the parameters in common ({}{}):\n"
      "{}",
      comparison.metric, comparison.shared.size(),
      rows < comparison.shared.size() ? fmt::format(", the best {}", rows) : "", table.text());
}

Result<int> compare(os::Env& env, const CompareOptions& options) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  std::vector<Loaded> runs;
  for (const auto& name : options.runs) {
    BERTH_ASSIGN(auto record, run::find_run(context, name));
    BERTH_ASSIGN(auto tasks, context.store->tasks(record.id));
    std::string state = state_now(env, record);
    runs.push_back({{std::move(record), std::move(state)}, std::move(tasks)});
  }
  experiment::Program program;
  BERTH_ASSIGN(program.goal, common_goal(options, runs));
  Comparison comparison;
  comparison.metric = program.goal->metric;
  comparison.maximize = program.goal->maximize;
  for (const auto& each : runs) comparison.runs.push_back(summary(each, program));
  comparison.shared = shared_parameters(runs, program);
  if (options.json) {
    print(compare_json(comparison));
    return 0;
  }
  print(runs_side_by_side(comparison) + best_side_by_side(comparison) +
        shared_side_by_side(comparison));
  return 0;
}

}  // namespace

Command compare_command() {
  return command("compare", "Compare the results of runs", compare);
}

}  // namespace berth::cli
