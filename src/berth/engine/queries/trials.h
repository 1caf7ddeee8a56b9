// The trials of an experiment in order: the best, the Pareto front, and sorted by any column.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/experiment/program.h"
#include "berth/store/store.h"

namespace berth::engine {

/// Trials in the order in which they are shown. The records belong to the caller.
using Order = std::vector<const store::TaskRecord*>;

/// The score of a trial that is done and keeps all constraints: its last value of the goal's
/// metric.
std::optional<double> score_of(const store::TaskRecord& task, const experiment::Program& program);
/// The done trial with the best score; nullptr if no trial has a score.
const store::TaskRecord* best_task(const std::vector<store::TaskRecord>& tasks,
                                   const experiment::Program& program);
/// A line such as "best digits-3/17  accuracy 0.983  lr 0.19  width 64".
std::string best_line(const store::RunRecord& run, const store::TaskRecord& task,
                      const experiment::Program& program);

/// The best_line() of the best trial; where constraints leave none, a line that says so; else "".
std::string best_text(const store::RunRecord& run, const std::vector<store::TaskRecord>& tasks,
                      const experiment::Program& program);

/// Guesses from a metric's name, such as "val_loss", whether lower values are better.
bool lower_is_better(std::string_view metric);
/// Returns true if a metric only counts progress, such as "epoch", and is not a score.
bool counts_progress(std::string_view metric);
/// Says how to add the missing goal of an experiment: "digits-3 has no goal, so no best trial is
/// known; …", without an end of line. Names a metric that the trials reported.
std::string no_goal_text(const store::RunRecord& run, const std::vector<store::TaskRecord>& tasks);

/// How long the last attempt of a task took; nullopt while it runs.
std::optional<Duration> time_of(const store::TaskRecord& task);
/// The state with its cause where that says more: "failed (exit 3)".
std::string state_text(const store::TaskRecord& task);

/// The last value of one metric of a trial.
std::optional<double> metric_of(const store::TaskRecord& task, std::string_view name);
/// Appends the name to the list unless it is there.
void add_new(std::vector<std::string>& names, const std::string& name);
/// The names of all parameters, or of all metrics, that any of the trials has, in the order of
/// their first appearance.
std::vector<std::string> parameter_names(const Order& trials);
std::vector<std::string> metric_names(const Order& trials);
/// The value of one parameter of a trial; "-" when the trial has none of that name.
std::string value_of(const store::TaskRecord& task, std::string_view parameter);

/// The order in which the trials were proposed.
Order in_turn(const std::vector<store::TaskRecord>& tasks);
/// The Pareto front under several goals: the finished trials that keep all constraints and that no
/// other such trial beats, where to beat means to be as good in all goals and better in one. Their
/// order is the given one. Empty with one goal.
Order front_of(const Order& trials, const experiment::Program& program);
/// The best trials first, and under several goals the front before the others; what breaks
/// constraints comes after what keeps them, the least broken first. Without a goal it is the order
/// in which they were proposed.
Order sorted_trials(const std::vector<store::TaskRecord>& tasks,
                    const experiment::Program& program);
/// Sorts by "task", "time", "state", or by a parameter or metric ("params.x", "metrics.x" where
/// both have the name), the lowest first, but the best first for the goal's metric; trials without
/// a value come last. invalid: no trial has it.
Result<Order> sorted_trials(const std::vector<store::TaskRecord>& tasks,
                            const experiment::Program& program, std::string_view key);

}  // namespace berth::engine
