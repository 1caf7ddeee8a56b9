#include "berth/engine/queries/comparison.h"

#include <algorithm>
#include <map>

#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/run_state.h"
#include "berth/engine/queries/trials.h"
#include "berth/run/state/find_run.h"

namespace berth::engine {
namespace {

struct Loaded {
  ShownRun run;
  std::vector<store::TaskRecord> tasks;
};

/// The goal by which the runs are compared: the requested one, or the one that all runs with a goal
/// share.
Result<experiment::Goal> common_goal(const std::vector<Loaded>& runs, const std::string& metric,
                                     std::optional<bool> maximize) {
  std::optional<experiment::Goal> common;
  for (const auto& each : runs) {
    BERTH_ASSIGN(const auto program, program_of(each.run.record));
    const auto& goal = program.goal;
    if (!goal) continue;
    const bool metric_agrees = !common || common->metric == goal->metric;
    const bool agrees = metric_agrees && (!common || common->maximize == goal->maximize);
    if (!agrees && (metric.empty() || !maximize))
      return fail(ErrorKind::invalid,
                  "{} has another goal ({} {}) than the runs before it ({} {}); choose what to "
                  "compare: --metric NAME --direction max",
                  each.run.record.name, goal->maximize ? "max" : "min", goal->metric,
                  common->maximize ? "max" : "min", common->metric);
    if (!common) common = goal;
  }
  if (!common && metric.empty())
    return fail(ErrorKind::invalid,
                "none of the runs has a goal; choose what to compare: --metric NAME");
  experiment::Goal goal = common.value_or(experiment::Goal{});
  if (!metric.empty()) goal.metric = metric;
  if (maximize) goal.maximize = *maximize;
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
  if (const auto* best = best_task(loaded.tasks, program)) summary.best = *best;
  std::vector<double> scores;
  std::vector<Duration> times;
  for (const auto& task : loaded.tasks) {
    if (const auto score = score_of(task, program)) scores.push_back(*score);
    if (task.state == store::TaskState::done && task.started && task.ended)
      times.push_back(*task.ended - *task.started);
  }
  summary.scored = static_cast<std::int64_t>(scores.size());
  if (summary.best) summary.score = score_of(*summary.best, program);
  summary.median = median(scores);
  summary.trial = median(times);
  if (record.started && record.ended) summary.took = *record.ended - *record.started;
  return summary;
}

/// The best score for each setting of the parameters, in any order.
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

}  // namespace

Result<Comparison> compare(run::Context& context, const std::vector<std::string>& runs,
                           const std::string& metric, std::optional<bool> maximize) {
  std::vector<Loaded> loaded;
  for (const auto& name : runs) {
    BERTH_ASSIGN(auto record, run::find_run(context, name));
    BERTH_ASSIGN(auto tasks, context.store->tasks(record.id));
    std::string state = state_now(*context.env, record, context.state_directory);
    loaded.push_back({{std::move(record), std::move(state)}, std::move(tasks)});
  }
  experiment::Program program;
  BERTH_ASSIGN(program.goal, common_goal(loaded, metric, maximize));
  Comparison comparison;
  comparison.metric = program.goal->metric;
  comparison.maximize = program.goal->maximize;
  for (const auto& each : loaded) comparison.runs.push_back(summary(each, program));
  comparison.shared = shared_parameters(loaded, program);
  return comparison;
}

}  // namespace berth::engine
