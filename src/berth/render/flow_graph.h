// A flow's steps with the states of their tasks, and its graph: as text, JSON and for Graphviz.
#pragma once

#include <string>
#include <vector>

#include "berth/engine/flow_steps.h"

namespace berth::render {

std::string steps_table(const std::vector<engine::StepCounts>& steps);

/// The graph as text, each step with the steps that it waits for and the files that it writes, or
/// in the language of Graphviz.
std::string graph_text(const flow::Flow& flow, const std::vector<engine::StepCounts>& steps);
std::string graph_dot(const flow::Flow& flow, const std::vector<engine::StepCounts>& steps);
/// {"version":1,"steps":[{"name","after":[names],"files","writes":[paths],"known","counts":{…},
/// "seconds":{"sum","median","longest"}}]}: `known` is false while the number of its tasks is
/// unknown. The seconds are those of the tasks' latest attempts, null if none has run.
std::string graph_json(const flow::Flow& flow, const std::vector<engine::StepCounts>& steps,
                       const std::vector<store::TaskRecord>& tasks);

}  // namespace berth::render
