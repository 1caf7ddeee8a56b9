// The trials of an experiment as people look at them: sorted, as a table, a chart, CSV.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/cli/table.h"
#include "berth/experiment/program.h"
#include "berth/store/store.h"

namespace berth::cli {

/// Trials in the order in which they are shown. The records belong to the caller.
using Order = std::vector<const store::TaskRecord*>;

/// The score of a trial that is done and keeps all constraints: its last value of the goal's
/// metric.
std::optional<double> score_of(const store::TaskRecord& task, const experiment::Program& program);
/// The done trial with the best score; nullptr when there is none.
const store::TaskRecord* best_task(const std::vector<store::TaskRecord>& tasks,
                                   const experiment::Program& program);
/// A line such as "best digits-3/17  accuracy 0.983  lr 0.19  width 64".
std::string best_line(const store::RunRecord& run, const store::TaskRecord& task,
                      const experiment::Program& program);

/// Says how to add the missing goal of an experiment: "digits-3 has no goal, so no best trial is
/// known; …", without an end of line. Names a metric that the trials reported.
std::string no_goal_text(const store::RunRecord& run, const std::vector<store::TaskRecord>& tasks);

/// The best_line() of the best trial; where constraints leave none, a line that says so; else "".
std::string best_text(const store::RunRecord& run, const std::vector<store::TaskRecord>& tasks,
                      const experiment::Program& program);

/// The last value of one metric of a trial.
std::optional<double> metric_of(const store::TaskRecord& task, std::string_view name);
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
/// both have the name), the least first, but the best first for the goal's metric; trials without a
/// value come last. invalid: no trial has it.
Result<Order> sorted_trials(const std::vector<store::TaskRecord>& tasks,
                            const experiment::Program& program, std::string_view key);

/// A table of at most `most` rows (0: all of them). Under several goals a star marks each trial of
/// the front.
Table trials_table(const Order& trials, const experiment::Program& program, std::size_t most);
/// CSV with a line for each trial and the names of --json as its columns:
/// task,state,…,params.lr,…,metrics.loss,…. An apostrophe precedes text that a spreadsheet would
/// run as a formula, unless `raw`.
std::string trials_csv(const store::RunRecord& run, const Order& trials, bool raw);
/// A chart of the finished trials' scores by trial number, at most 80 columns wide; "" with fewer
/// than three of them. With many, the worst quarter may lie beyond the edge, where it is drawn.
std::string score_chart(const std::vector<store::TaskRecord>& tasks,
                        const experiment::Program& program);
/// The finished trials' scores by the value of a parameter: along an axis (logarithmic where the
/// values span two powers of ten) or, where they are no numbers, in a strip each. "" with fewer
/// than three of them.
std::string scatter_chart(const std::vector<store::TaskRecord>& tasks,
                          const experiment::Program& program, const std::string& parameter);
/// What a trial has reported of the goal's metric.
struct Curve {
  std::string label;
  std::vector<double> values;
};
/// At most nine learning curves, the leading trial first; "" where none has two reports.
std::string curve_chart(const std::vector<Curve>& curves, const experiment::Program& program);

}  // namespace berth::cli
