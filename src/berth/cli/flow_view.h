// What people see of a flow: its steps and the states of their tasks, its graph, and what a run of
// it would do.
#pragma once

#include <string>
#include <vector>

#include "berth/engine/flow_steps.h"
#include "berth/run/flow_run.h"

namespace berth::cli {

std::string steps_table(const std::vector<engine::StepCounts>& steps);

/// The graph as text, each step with what it waits for and writes, or in the language of Graphviz.
std::string graph_text(const flow::Flow& flow, const std::vector<engine::StepCounts>& steps);
std::string graph_dot(const flow::Flow& flow, const std::vector<engine::StepCounts>& steps);
/// {"version":1,"steps":[{"name","after":[names],"files","writes":[paths],"known","counts":{…},
/// "seconds":{"sum","median","longest"}}]}: `known` says whether the number of its tasks is, and
/// the seconds, null where no task was carried out, are those of the tasks' latest attempts.
std::string graph_json(const flow::Flow& flow, const std::vector<engine::StepCounts>& steps,
                       const std::vector<store::TaskRecord>& tasks);

/// Prints what berth run --plan says of a flow of which the images `missing` are not on this
/// machine. Returns the exit code.
Result<int> show_flow_plan(run::Context& context, run::FlowProgram program,
                           const std::string& directory, const std::vector<std::string>& missing,
                           bool json);

}  // namespace berth::cli
