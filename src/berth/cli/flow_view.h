// What people see of a flow: its steps and the states of their tasks, its graph, and what a run of
// it would do.
#pragma once

#include <string>
#include <vector>

#include "berth/base/result.h"
#include "berth/flow/flow.h"
#include "berth/run/flow_run.h"
#include "berth/store/store.h"

namespace berth::cli {

struct StepCounts {
  std::string name;
  store::Counts counts;
  bool known = true;  ///< false: how many tasks the step has is not known yet.
};
/// Counts the tasks of each step, in the order of the flow's steps.
std::vector<StepCounts> step_counts(const flow::Flow& flow, const store::RunRecord& run,
                                    const std::vector<store::TaskRecord>& tasks);
std::string steps_table(const std::vector<StepCounts>& steps);

/// The graph as text, each step with what it waits for and writes, or in the language of Graphviz.
std::string graph_text(const flow::Flow& flow, const std::vector<StepCounts>& steps);
std::string graph_dot(const flow::Flow& flow, const std::vector<StepCounts>& steps);
/// {"version":1,"steps":[{"name","after":[names],"files","writes":[paths],"known","counts":{…},
/// "seconds":{"sum","median","longest"}}]}: `known` says whether the number of its tasks is, and
/// the seconds, null where no task was carried out, are those of the tasks' latest attempts.
std::string graph_json(const flow::Flow& flow, const std::vector<StepCounts>& steps,
                       const std::vector<store::TaskRecord>& tasks);

/// The step of a task, by the task's label.
std::string_view step_name(std::string_view label);

/// Why a task of the flow waits for another one; "" when it does not.
/// The task that failed first among those that a task waits for, directly or through others;
/// nullptr where none failed.
const store::TaskRecord* first_failed_before(const flow::Flow& flow,
                                             const std::vector<store::TaskRecord>& tasks,
                                             std::string_view label);
std::string waits_for(const flow::Flow& flow, const std::vector<StepCounts>& steps,
                      std::string_view label);

/// The flow of a run as it was submitted.
Result<flow::Flow> flow_of(const store::RunRecord& run);

/// Prints what berth run --plan says of a flow of which the images `missing` are not on this
/// machine. Returns the exit code.
Result<int> show_flow_plan(run::Context& context, run::FlowProgram program,
                           const std::string& directory, const std::vector<std::string>& missing,
                           bool json);

}  // namespace berth::cli
