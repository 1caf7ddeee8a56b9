// Why spawn_posix() could not start a process, for people.
#pragma once

#include <string>

#include "berth/os/spawn.h"

namespace berth::os {

/// Returns why execve() does not know the file; "" where a shell would run it as its script.
std::string why_no_program(Env& env, const std::string& path);

/// Says which part of a start exceeds what the kernel takes.
Error too_long(const SpawnSpec& spec);

}  // namespace berth::os
