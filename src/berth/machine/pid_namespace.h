// The PID namespace of this process. In a container pids are other numbers, so a pid of another
// namespace names nothing here.
#pragma once

#include <cstdint>

#include "berth/os/env.h"

namespace berth::machine {

/// The inode of the namespace; 0 where it is not known. It is unique within one boot.
std::uint64_t pid_namespace(os::Env& env);
/// As pid_namespace(), but 0 also for the first namespace of the machine, outside all containers.
std::uint64_t container_namespace(os::Env& env);

}  // namespace berth::machine
