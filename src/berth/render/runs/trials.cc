#include "berth/render/runs/trials.h"

#include <algorithm>
#include <set>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/url.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/trials.h"
#include "berth/experiment/constraint.h"
#include "berth/experiment/proposers/space.h"

namespace berth::render {
namespace {

constexpr std::size_t kMostMetrics = 6, kMostParams = 24;  // of a table; --csv and --json have all

std::string time_text(const std::optional<Wall>& time) {
  return time ? format_utc(*time) : "";
}

}  // namespace

Table trials_table(const engine::Order& trials, const experiment::Program& program,
                   std::size_t most) {
  auto params = engine::parameter_names(trials);
  params.resize(std::min(params.size(), kMostParams));
  std::vector<std::string> metrics;  // the goal first
  if (program.goal) metrics.push_back(program.goal->metric);
  for (const auto& goal : program.further_goals) engine::add_new(metrics, goal.metric);
  for (const auto& constraint : program.constraints) engine::add_new(metrics, constraint.metric);
  for (const auto& name : engine::metric_names(trials))
    if (metrics.size() < kMostMetrics) engine::add_new(metrics, name);

  std::vector<Column> head{"task"};
  // The goal stays; of the others the last ones are left out first, the metrics before the values.
  for (std::size_t i = 0; i < params.size(); ++i)
    head.emplace_back(params[i], static_cast<int>(i) + 2);
  for (std::size_t i = 0; i < metrics.size(); ++i)
    head.emplace_back(metrics[i], i == 0 ? 0 : static_cast<int>(kMostParams + i) + 2);
  const engine::Order best = engine::front_of(trials, program);
  const std::set<const store::TaskRecord*> front(best.begin(), best.end());
  if (!front.empty()) head.emplace_back("front");
  head.emplace_back("time", 1);
  head.emplace_back("state", Column::kCut);
  Table table(head);
  for (const auto* task : trials) {
    if (most > 0 && most-- == 1 && trials.back() != task) break;
    std::vector<std::string> row{task->label};
    for (const auto& name : params)
      row.push_back(clip(without_secrets(engine::value_of(*task, name)), 32));
    for (const auto& name : metrics) {
      const auto value = engine::metric_of(*task, name);
      row.push_back(value ? fmt::format("{:.6g}", *value) : "-");
    }
    if (!front.empty()) row.emplace_back(front.contains(task) ? "*" : "");
    const auto time = engine::time_of(*task);
    row.push_back(time ? format_duration(*time) : "-");
    std::string state = engine::state_text(*task);
    for (const auto& bound : program.constraints) {
      if (task->state != store::TaskState::done) break;
      if (!engine::metric_of(*task, bound.metric))  // it was stopped before it reported this
        state += fmt::format(", without {}", bound.metric);
      else if (!experiment::broken({bound}, task->metrics).empty())
        state += fmt::format(", breaks {}", experiment::constraint_text(bound));
    }
    row.push_back(std::move(state));
    table.add(std::move(row));
  }
  return table;
}

std::string trials_csv(const store::RunRecord& run, const engine::Order& trials, bool raw) {
  const auto params = engine::parameter_names(trials);
  const auto metrics = engine::metric_names(trials);
  std::vector<Column> head{"id", "state", "attempts", "exit_code", "cause"};
  for (const auto& name : params) head.push_back("params." + name);
  for (const auto& name : metrics) head.push_back("metrics." + name);
  head.insert(head.end(), {"started", "ended", "seconds", "host"});
  Table table(std::move(head));
  for (const auto* task : trials) {
    std::vector<std::string> row{
        run.name + "/" + task->label, std::string(store::name(task->state)),
        fmt::format("{}", task->attempts),
        task->exit_code ? fmt::format("{}", *task->exit_code) : "", engine::cause_text(*task)};
    for (const auto& name : params) {
      const auto* value = experiment::find_value(task->params, name);
      row.push_back(value != nullptr ? *value : "");
    }
    for (const auto& name : metrics) {
      const auto value = engine::metric_of(*task, name);
      row.push_back(value ? fmt::format("{}", *value) : "");
    }
    const auto time = engine::time_of(*task);
    row.insert(row.end(),
               {time_text(task->started), time_text(task->ended),
                time ? fmt::format("{:.3f}", std::chrono::duration<double>(*time).count()) : "",
                task->host});
    table.add(std::move(row));
  }
  return to_csv(table, raw);
}

}  // namespace berth::render
