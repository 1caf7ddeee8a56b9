// The trials of an experiment as people look at them: sorted, as a table, a chart, CSV.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/cli/table.h"

namespace berth::cli {

using Order = std::vector<const store::TaskRecord*>;

/// Its last value of this metric.
std::optional<double> metric_of(const store::TaskRecord& task, std::string_view name);
/// Every name that a trial has of its parameters, or of its metrics, in the order in which they
/// came first.
std::vector<std::string> parameter_names(const Order& trials);
std::vector<std::string> metric_names(const Order& trials);
std::string value_of(const store::TaskRecord& task, std::string_view parameter);  // "-": has none

/// As they were proposed.
Order in_turn(const std::vector<store::TaskRecord>& tasks);
/// Of several goals: the finished trials that no other beats, as good in all and better in one, in
/// the order given. Empty with one goal.
Order front_of(const Order& trials, const experiment::Program& program);
/// By the goal, the best first, and of several goals the front before the others; without a goal as
/// they were proposed.
Order sorted_trials(const std::vector<store::TaskRecord>& tasks,
                    const experiment::Program& program);
/// By "task", "time", "state", or a parameter or metric ("params.x", "metrics.x" where both have
/// it), the least first, but the best first for the goal's metric; those without it last. invalid:
/// no trial has it.
Result<Order> sorted_trials(const std::vector<store::TaskRecord>& tasks,
                            const experiment::Program& program, std::string_view key);

/// At most `most` rows (0: all); of several goals, a star at each trial of the front.
std::string trials_table(const Order& trials, const experiment::Program& program, std::size_t most);
/// A line a trial, its columns called as in --json: task,state,…,params.lr,…,metrics.loss,….
std::string trials_csv(const store::RunRecord& run, const Order& trials);
/// The scores of the finished trials in the order of their numbers, at most 80 columns wide; ""
/// with fewer than three. Of many, the worst quarter may lie beyond the edge, and is drawn there.
std::string score_chart(const std::vector<store::TaskRecord>& tasks,
                        const experiment::Program& program);

}  // namespace berth::cli
