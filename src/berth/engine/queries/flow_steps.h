// The steps of a flow's run: the states of their tasks, and what a task waits for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/flow/flow.h"
#include "berth/store/store.h"

namespace berth::engine {

struct StepCounts {
  std::string name;
  store::Counts counts;
  bool known = true;  ///< False while the number of the step's tasks is unknown.
};
/// Counts the tasks of each step, in the order of the flow's steps.
std::vector<StepCounts> step_counts(const flow::Flow& flow, const store::RunRecord& run,
                                    const std::vector<store::TaskRecord>& tasks);

/// The step of a task, from the task's label.
std::string_view step_name(std::string_view label);

/// Returns the task that failed first among those that a task waits for, directly or through
/// others; nullptr if none failed.
const store::TaskRecord* first_failed_before(const flow::Flow& flow,
                                             const std::vector<store::TaskRecord>& tasks,
                                             std::string_view label);
/// Says which step a task waits for; "" if it waits for none.
std::string waits_for(const flow::Flow& flow, const std::vector<StepCounts>& steps,
                      std::string_view label);

/// The flow of a run as it was submitted. Errors: corrupt.
Result<flow::Flow> flow_of(const store::RunRecord& run);

}  // namespace berth::engine
