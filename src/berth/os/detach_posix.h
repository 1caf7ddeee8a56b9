// A process detaches itself from whoever started it, and outlives them.
#pragma once

#include "berth/os/env.h"

namespace berth::os {

/// Returns in a child of the caller, which has a session of its own, "/" as its directory, no
/// descriptor of the caller's, and `log` (0600) as standard error. The caller itself waits until
/// the child closes the returned Fd and prints what the child wrote there: a text that begins with
/// `good` to standard output, after which it exits with 0, any other to standard error, after which
/// it exits with 1. An Error returns in the caller. The process must have one thread only.
Result<Fd> detach(Env& env, const std::string& log, std::string_view good);

}  // namespace berth::os
