#include "berth/cli/trials_view.h"
#include "berth/base/url.h"
#include "berth/cli/first_file.h"
#include "berth/cli/run_view.h"
#include "berth/cli/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/experiment/constraint.h"
#include "berth/experiment/space.h"

namespace berth::cli {
namespace {

constexpr std::size_t kMostMetrics = 6, kMostParams = 24;  // of a table; --csv and --json have all

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

/// A spreadsheet takes a cell that begins like this for a formula, and may run it.
bool is_formula(std::string_view text) {
  constexpr std::array kBegins = {"=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠"};
  return !parse_number(text) &&
         std::ranges::any_of(kBegins, [&](const char* begin) { return text.starts_with(begin); });
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? "\"\"" : std::string(1, c);
  return cell + "\"";
}

std::string csv_line(const std::vector<std::string>& cells, bool raw) {
  std::string line;
  for (const auto& cell : cells) {
    if (&cell != cells.data()) line += ',';
    line += csv_cell(!raw && is_formula(cell) ? "'" + cell : cell);
  }
  return line + "\n";
}

std::string time_text(const std::optional<Wall>& time) {
  return time ? format_utc(*time) : "";
}

}  // namespace

std::optional<double> score_of(const store::TaskRecord& task, const experiment::Program& program) {
  if (!program.goal || task.state != store::TaskState::done) return std::nullopt;
  return experiment::feasible_score(*program.goal, program.constraints, task.metrics);
}

const store::TaskRecord* best_task(const std::vector<store::TaskRecord>& tasks,
                                   const experiment::Program& program) {
  const store::TaskRecord* best = nullptr;
  double best_score = 0;
  for (const auto& task : tasks) {
    const auto score = score_of(task, program);
    if (!score) continue;
    const bool better =
        best == nullptr || (program.goal->maximize ? *score > best_score : *score < best_score);
    if (!better) continue;
    best = &task;
    best_score = *score;
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

Table trials_table(const Order& trials, const experiment::Program& program, std::size_t most) {
  auto params = parameter_names(trials);
  params.resize(std::min(params.size(), kMostParams));
  std::vector<std::string> metrics;  // the goal first
  if (program.goal) metrics.push_back(program.goal->metric);
  for (const auto& goal : program.further_goals) add_new(metrics, goal.metric);
  for (const auto& constraint : program.constraints) add_new(metrics, constraint.metric);
  for (const auto& name : metric_names(trials))
    if (metrics.size() < kMostMetrics) add_new(metrics, name);

  std::vector<std::string> head{"task"};
  head.insert(head.end(), params.begin(), params.end());
  head.insert(head.end(), metrics.begin(), metrics.end());
  const auto front = as_set(front_of(trials, program));
  if (!front.empty()) head.emplace_back("front");
  head.insert(head.end(), {"time", "state"});
  Table table(head);
  for (const auto* task : trials) {
    if (most > 0 && most-- == 1 && trials.back() != task) break;
    std::vector<std::string> row{task->label};
    for (const auto& name : params) row.push_back(clip(without_secrets(value_of(*task, name)), 32));
    for (const auto& name : metrics) {
      const auto value = metric_of(*task, name);
      row.push_back(value ? fmt::format("{:.6g}", *value) : "-");
    }
    if (!front.empty()) row.emplace_back(front.contains(task) ? "*" : "");
    const auto time = time_of(*task);
    row.push_back(time ? format_duration(*time) : "-");
    std::string state = state_text(*task);
    for (const auto& bound : program.constraints) {
      if (task->state != store::TaskState::done) break;
      if (!metric_of(*task, bound.metric))  // it was stopped before it told
        state += fmt::format(", without {}", bound.metric);
      else if (!experiment::broken({bound}, task->metrics).empty())
        state += fmt::format(", breaks {}", experiment::constraint_text(bound));
    }
    row.push_back(std::move(state));
    table.add(std::move(row));
  }
  return table;
}

std::string trials_csv(const store::RunRecord& run, const Order& trials, bool raw) {
  const auto params = parameter_names(trials);
  const auto metrics = metric_names(trials);
  std::vector<std::string> head{"id", "state", "attempts", "exit_code", "cause"};
  for (const auto& name : params) head.push_back("params." + name);
  for (const auto& name : metrics) head.push_back("metrics." + name);
  head.insert(head.end(), {"started", "ended", "seconds", "host"});
  std::string text = csv_line(head, raw);
  for (const auto* task : trials) {
    std::vector<std::string> row{
        run.name + "/" + task->label, std::string(store::name(task->state)),
        fmt::format("{}", task->attempts),
        task->exit_code ? fmt::format("{}", *task->exit_code) : "", cause_text(*task)};
    for (const auto& name : params) {
      const auto* value = experiment::find_value(task->params, name);
      row.push_back(value != nullptr ? *value : "");
    }
    for (const auto& name : metrics) {
      const auto value = metric_of(*task, name);
      row.push_back(value ? fmt::format("{}", *value) : "");
    }
    const auto time = time_of(*task);
    row.insert(row.end(),
               {time_text(task->started), time_text(task->ended),
                time ? fmt::format("{:.3f}", std::chrono::duration<double>(*time).count()) : "",
                task->host});
    text += csv_line(row, raw);
  }
  return text;
}

}  // namespace berth::cli
