// berth autoscale, as berth-server carries it out.
#pragma once

#include "berth/cli/commands/autoscale.h"

namespace berth::cli {

Result<int> autoscale(os::Env& env, const AutoscaleOptions& options);

}  // namespace berth::cli
