// The variables of a process's environment, as an ordered list: of a name that stands twice the
// first counts, as for getenv().
#pragma once

#include <string>

#include "berth/exec/messages.h"
#include "berth/os/env.h"

namespace berth::exec {

/// Of this process, without what tells it which devices are its own: each task is told that for
/// itself.
Environment inherited_environment(os::Env& env);
/// Replaces or adds.
void set(Environment& environment, std::string name, std::string value);
/// All of `over`, one after another.
void set(Environment& environment, const Environment& over);

}  // namespace berth::exec
