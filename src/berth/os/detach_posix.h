// Becoming a process that belongs to nobody.
#pragma once

#include "berth/os/env.h"

namespace berth::os {

/// Goes on in a child of the caller, with a session of its own, "/" as its directory, no descriptor
/// of the caller's, and standard error in `log` (0600). The caller waits for what the child writes
/// to the returned Fd until that is closed, prints it, to standard output if it begins with
/// `good`, else to standard error, and exits, 0 or 1. An error is the caller's. One thread only.
Result<Fd> detach(Env& env, const std::string& log, std::string_view good);

}  // namespace berth::os
