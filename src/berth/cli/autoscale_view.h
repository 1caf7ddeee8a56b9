// What berth why autoscale/SERVER tells of the control loop's decisions.
#pragma once

#include <string>

#include "berth/base/result.h"
#include "berth/os/env.h"

namespace berth::cli {

/// Prints the last decision for the server and the last changes, of what berth autoscale recorded.
/// not_found: it has decided nothing for a server of that name, with the names of others.
Result<int> explain_decisions(os::Env& env, const std::string& state_directory,
                              const std::string& server, bool json);

}  // namespace berth::cli
