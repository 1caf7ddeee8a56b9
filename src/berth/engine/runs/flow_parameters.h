// Parameters of a flow as users set them: NAME=VALUE texts and files of values.
#pragma once

#include <string>

#include "berth/flow/flow.h"
#include "berth/os/env.h"

namespace berth::engine {

/// Sets parameters from a YAML file of names with a value, or a list of values, each. Errors:
/// invalid, with file and line.
Status read_parameters(os::Env& env, const std::string& file, flow::FlowOptions& options);
/// Sets a parameter as "lr=0.1" or "samples=[A, B]" says, in place of an earlier value. Errors:
/// usage, with the name --set.
Status set_parameter(const std::string& text, flow::FlowOptions& options);

}  // namespace berth::engine
