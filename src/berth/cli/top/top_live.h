// berth top on a terminal: keys, drawing, and what is done for them.
#pragma once

#include "berth/cli/top/top_data.h"

namespace berth::cli {

/// Shows it until somebody quits or a stop signal comes. Returns the exit code.
Result<int> top_live(os::Env& env);

}  // namespace berth::cli
