// A process that this process waits for.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "berth/base/result.h"
#include "berth/os/env.h"
#include "berth/os/spawn.h"

namespace berth::engine {

/// Receives text for people, such as the output of a command. It may be a part of a line.
using Print = std::function<void(std::string_view text)>;

/// Runs a process, passes its output to `print`, and waits for it. Returns how it ended: "" for
/// exit code 0, otherwise "exit 3" or "ended by signal 9". Errors: interrupted, if a stop signal
/// arrived meanwhile: the process was killed; those of Env::spawn().
Result<std::string> run_process(os::Env& env, const os::SpawnSpec& spec, const Print& print);

}  // namespace berth::engine
