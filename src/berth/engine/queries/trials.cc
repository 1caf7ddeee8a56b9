#include "berth/engine/queries/trials.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/url.h"
#include "berth/engine/queries/run_record.h"
#include "berth/experiment/constraint.h"
#include "berth/experiment/proposers/space.h"

namespace berth::engine {
namespace {

/// What a trial is sorted by: a number where it is one, else a text; numbers come first.
struct Key {
  std::optional<double> number;
  std::string text;
  bool absent() const { return !number && text.empty(); }
};

Key key_of_text(const std::string& text) {
  const auto number = parse_number(text);
  return {number ? std::optional(*number) : std::nullopt, number ? "" : text};
}

bool before(const Key& a, const Key& b, bool greatest_first) {
  if (a.absent() || b.absent()) return !a.absent() && b.absent();
  if (a.number && b.number) return greatest_first ? *a.number > *b.number : *a.number < *b.number;
  if (a.number || b.number) return a.number.has_value();
  return a.text < b.text;
}

using KeyOf = std::function<Key(const store::TaskRecord&)>;

Order sorted(const std::vector<store::TaskRecord>& tasks, const KeyOf& key_of,
             bool greatest_first) {
  std::vector<std::pair<Key, const store::TaskRecord*>> keyed;
  keyed.reserve(tasks.size());
  for (const auto& task : tasks) keyed.emplace_back(key_of(task), &task);
  std::ranges::stable_sort(keyed, [&](const auto& a, const auto& b) {
    return before(a.first, b.first, greatest_first);
  });
  Order order;
  for (const auto& [key, task] : keyed) order.push_back(task);
  return order;
}

}  // namespace

void add_new(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

std::optional<Duration> time_of(const store::TaskRecord& task) {
  if (!task.started || !task.ended) return std::nullopt;
  return *task.ended - *task.started;
}

std::string state_text(const store::TaskRecord& task) {
  using enum exec::Cause;
  const bool plain = !task.cause || task.cause == ok || task.state == store::TaskState::running ||
                     (task.cause == stopped && task.state == store::TaskState::stopped);
  return plain ? std::string(store::name(task.state))
               : fmt::format("{} ({})", store::name(task.state), cause_text(task));
}

std::optional<double> score_of(const store::TaskRecord& task, const experiment::Program& program) {
  if (!program.goal || task.state != store::TaskState::done) return std::nullopt;
  return experiment::feasible_score(*program.goal, program.constraints, task.metrics);
}

const store::TaskRecord* best_task(const std::vector<store::TaskRecord>& tasks,
                                   const experiment::Program& program) {
  const store::TaskRecord* best = nullptr;
  experiment::Scored best_score;
  for (const auto& task : tasks) {
    const auto score = score_of(task, program);
    if (!score) continue;
    const experiment::Scored scored{*score, task.number.value};
    if (best != nullptr && !experiment::is_better(*program.goal, scored, best_score)) continue;
    best = &task;
    best_score = scored;
  }
  return best;
}

std::string best_line(const store::RunRecord& run, const store::TaskRecord& task,
                      const experiment::Program& program) {
  std::string line = fmt::format("best {}/{}  {} {:.6g}", run.name, task.label,
                                 program.goal->metric, score_of(task, program).value_or(0));
  for (const auto& goal : program.further_goals)
    for (const auto& [name, value] : task.metrics)
      if (name == goal.metric) line += fmt::format("  {} {:.6g}", name, value);
  for (const auto& [name, value] : task.params)
    line += fmt::format("  {} {}", name, clip(without_secrets(value)));
  return line + "\n";
}

std::string best_text(const store::RunRecord& run, const std::vector<store::TaskRecord>& tasks,
                      const experiment::Program& program) {
  if (const auto* best = best_task(tasks, program)) return best_line(run, *best, program);
  const auto is_done = [](const auto& task) { return task.state == store::TaskState::done; };
  if (program.constraints.empty() || std::ranges::none_of(tasks, is_done)) return "";
  std::vector<std::string> bounds;
  for (const auto& each : program.constraints) bounds.push_back(experiment::constraint_text(each));
  return fmt::format("no best trial: none meets {}\n", join(bounds, " and "));
}

std::optional<double> metric_of(const store::TaskRecord& task, std::string_view name) {
  for (const auto& [metric, value] : task.metrics)
    if (metric == name) return value;
  return std::nullopt;
}

std::vector<std::string> parameter_names(const Order& trials) {
  std::vector<std::string> names;
  for (const auto* task : trials)
    for (const auto& [name, value] : task->params) add_new(names, name);
  return names;
}

std::vector<std::string> metric_names(const Order& trials) {
  std::vector<std::string> names;
  for (const auto* task : trials)
    for (const auto& [name, value] : task->metrics) add_new(names, name);
  return names;
}

std::string value_of(const store::TaskRecord& task, std::string_view parameter) {
  const auto* value = experiment::find_value(task.params, parameter);
  return value != nullptr ? *value : "-";
}

namespace {

/// What a finished trial came to by each goal, the greater the better; empty where one is missing.
std::vector<double> merits(const store::TaskRecord& task, const experiment::Program& program) {
  std::vector<double> merits;
  if (!score_of(task, program)) return merits;
  std::vector<experiment::Goal> goals{*program.goal};
  goals.insert(goals.end(), program.further_goals.begin(), program.further_goals.end());
  for (const auto& goal : goals) {
    const auto value = metric_of(task, goal.metric);
    if (!value) return {};
    merits.push_back(goal.maximize ? *value : -*value);
  }
  return merits;
}

std::set<const store::TaskRecord*> as_set(const Order& trials) {
  return {trials.begin(), trials.end()};
}

/// Both of the same goals.
bool beats(const std::vector<double>& a, const std::vector<double>& b) {
  return a != b && std::ranges::equal(a, b, std::greater_equal<>());
}

}  // namespace

Order front_of(const Order& trials, const experiment::Program& program) {
  if (!program.goal || program.further_goals.empty()) return {};
  std::vector<std::pair<std::vector<double>, const store::TaskRecord*>> front;
  for (const auto* task : trials) {
    auto of = merits(*task, program);
    if (of.empty() || std::ranges::any_of(front, [&](const auto& f) { return beats(f.first, of); }))
      continue;
    std::erase_if(front, [&](const auto& f) { return beats(of, f.first); });
    front.emplace_back(std::move(of), task);
  }
  Order order;
  for (const auto& [of, task] : front) order.push_back(task);
  return order;
}

Order in_turn(const std::vector<store::TaskRecord>& tasks) {
  Order order;
  for (const auto& task : tasks) order.push_back(&task);
  return order;
}

Order sorted_trials(const std::vector<store::TaskRecord>& tasks,
                    const experiment::Program& program) {
  const bool maximize = program.goal && program.goal->maximize;
  Order order =
      sorted(tasks, [&](const auto& task) { return Key{score_of(task, program), ""}; }, maximize);
  const auto beyond = [&](const auto* task) {
    return task->state == store::TaskState::done
               ? experiment::violation(program.constraints, task->metrics)
               : HUGE_VAL;
  };
  if (!program.constraints.empty()) std::ranges::stable_sort(order, {}, beyond);
  const std::set<const store::TaskRecord*> front = as_set(front_of(order, program));
  std::ranges::stable_partition(order, [&](const auto* task) { return front.contains(task); });
  return order;
}

Result<Order> sorted_trials(const std::vector<store::TaskRecord>& tasks,
                            const experiment::Program& program, std::string_view key) {
  if (key == "task")
    return sorted(
        tasks, [](const auto& task) { return Key{static_cast<double>(task.number.value), ""}; },
        false);
  if (key == "state")
    return sorted(
        tasks, [](const auto& task) { return Key{std::nullopt, state_text(task)}; }, false);
  if (key == "time")
    return sorted(
        tasks,
        [](const auto& task) {
          const auto time = time_of(task);
          return Key{
              time ? std::optional(std::chrono::duration<double>(*time).count()) : std::nullopt,
              ""};
        },
        false);
  const Order all = in_turn(tasks);
  const auto has = [](const std::vector<std::string>& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  const auto params = parameter_names(all);
  const auto metrics = metric_names(all);
  std::string_view metric = key, parameter = key;
  if (key.starts_with("metrics.")) metric.remove_prefix(8);
  if (key.starts_with("params.")) parameter.remove_prefix(7);
  if (program.goal && metric == program.goal->metric) return sorted_trials(tasks, program);
  if (has(metrics, metric))
    return sorted(tasks, [&](const auto& task) { return Key{metric_of(task, metric), ""}; }, false);
  if (has(params, parameter))
    return sorted(
        tasks,
        [&](const auto& task) {
          const std::string value = value_of(task, parameter);
          return value == "-" ? Key{} : key_of_text(value);
        },
        false);
  std::vector<std::string> known{"task", "time", "state"};
  known.insert(known.end(), metrics.begin(), metrics.end());
  known.insert(known.end(), params.begin(), params.end());
  return fail(ErrorKind::invalid, "--sort: no trial has '{}'; the columns are {}", clip(key),
              clip(join(known, ", "), 400));
}

bool counts_progress(std::string_view metric) {
  constexpr std::array<std::string_view, 6> kCounts{"epoch", "step",  "iteration",
                                                    "iter",  "round", "time"};
  return std::ranges::find(kCounts, lower(metric)) != kCounts.end();
}

bool lower_is_better(std::string_view metric) {
  const std::string name = lower(metric);
  return std::ranges::any_of(std::array{"loss", "err", "rmse", "mae", "time", "perplexity"},
                             [&](const char* word) { return name.find(word) != name.npos; });
}

std::string no_goal_text(const store::RunRecord& run, const std::vector<store::TaskRecord>& tasks) {
  const auto names = metric_names(in_turn(tasks));
  const auto score = std::ranges::find_if_not(names, counts_progress);
  const std::string metric =
      score != names.end() ? *score : (names.empty() ? "score" : names.front());
  const std::string goal = fmt::format("goal: {{metric: {}, direction: {}}}", metric,
                                       lower_is_better(metric) ? "min" : "max");
  if (names.empty())
    return fmt::format(
        "{} has no goal and no reported metric, so no best trial is known; to rank trials, print "
        "a line such as ::berth {}=0.93 in each trial and add {} to the file",
        run.name, metric, goal);
  return fmt::format(
      "{0} has no goal, so no best trial is known; add {2} to the file; to sort the trials of this "
      "run: berth show {0} --sort {1}",
      run.name, metric, goal);
}

}  // namespace berth::engine
