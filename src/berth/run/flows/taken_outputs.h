// Where a flow's targets run alone (--only), what they need is what lies where its makers put it.
#pragma once

#include "berth/run/flows/inputs.h"

namespace berth::run {

/// Finishes a task that is taken with the outputs that lie in the flow's folder; one that nobody
/// reads, with nothing. Failure: not_found, with what makes the file; interrupted.
Status take_outputs(flow::Graph& graph, Inputs& inputs, flow::TaskIndex task);

/// The same before anything runs: whether all of them are there, as far as that can be told.
Status check_taken(os::Env& env, flow::Graph& graph, const std::string& directory);

}  // namespace berth::run
