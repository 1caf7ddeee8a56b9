// What is said of a flow beside its file, and checks of a flow as a whole. Pure.
#pragma once

#include "berth/base/document.h"
#include "berth/flow/flow.h"

namespace berth::flow {

using Params = std::vector<std::pair<std::string, Words>>;

/// Parameters as a file writes them: names, with a value or a list of them each. Errors: invalid,
/// at the one that is wrong.
Result<Params> read_params(const Field& field);

/// Puts what was set of the flow's own parameters in their place, or of a sub-flow's, whose names
/// begin with `prefix`. Errors: invalid, for a name that is neither one of them nor STEP.NAME, with
/// the nearest.
Status set_params(const FlowOptions& options, std::string_view prefix, Params& params);
/// The same for those of a step. Errors: invalid, where the step has no such parameter.
Status set_step_params(const FlowOptions& options, const std::string& step, Params& params);

/// Notes the targets, and which steps are forced. Errors: invalid, for a step that there is not.
Status apply_options(const FlowOptions& options, Flow& flow);

/// Errors: invalid, for a step that waits for itself, through others or not: all of them by name.
Status check_cycles(const Flow& flow);

}  // namespace berth::flow
