// Moving this process into a scope of systemd's, for posix_env(). libsystemd is opened when it is
// needed: no program of ours is linked with it, and a machine may have none.
#pragma once

#include "berth/os/env.h"

namespace berth::os {

/// As Env::enter_scope has it.
Status enter_scope_posix(Env& env, const std::string& name, const std::string& part_of);

}  // namespace berth::os
