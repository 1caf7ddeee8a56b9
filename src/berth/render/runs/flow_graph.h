// A flow's steps with the states of their tasks, and its graph: as text, JSON and for Graphviz.
#pragma once

#include <string>
#include <vector>

#include "berth/engine/queries/flow_steps.h"
#include "berth/render/table.h"

namespace berth::render {

std::string steps_table(const std::vector<engine::StepCounts>& steps);

/// The graph of a flow with the states of its tasks.
struct FlowGraph {
  const flow::Flow& flow;
  const std::vector<engine::StepCounts>& steps;
  const std::vector<store::TaskRecord>& tasks;
  bool is_dot = false;  ///< The text is in the language of Graphviz.
};
/// Each step with the steps that it waits for and the files that it writes.
std::string to_text(const FlowGraph& graph, const View& view);
/// {"version":1,"steps":[{"name","after":[names],"files","writes":[paths],"known","counts":{…},
/// "seconds":{"sum","median","longest"}}]}: `known` is false while the number of its tasks is
/// unknown. The seconds are those of the tasks' latest attempts, null if none has run.
std::string to_json(const FlowGraph& graph);
/// The text of the graph, for a report.
std::string graph_text(const flow::Flow& flow, const std::vector<engine::StepCounts>& steps);

}  // namespace berth::render
