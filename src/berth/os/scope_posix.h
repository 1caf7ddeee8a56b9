// How posix_env() moves this process into a scope of systemd's. It opens libsystemd when it needs
// it: no program of ours is linked with that library, and a machine may have none.
#pragma once

#include "berth/os/env.h"

namespace berth::os {

/// Does what Env::enter_scope() says.
Status enter_scope_posix(Env& env, const std::string& name, const std::string& part_of);

}  // namespace berth::os
