// Another command of Berth that runs while this one continues.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/os/child_process.h"

namespace berth::cli {

/// Starts `berth` with these words ({"logs", "digits-3"}) in the environment and the directory of
/// this process. The destructor of the result ends the command with SIGTERM. A command that cannot
/// be started prints the error, and ends in the next turn of the loop.
std::unique_ptr<os::ChildProcess> start_own_command(
    os::Env& env, const std::vector<std::string>& words,
    const std::function<void(std::string_view text)>& print, std::function<void()> end);

}  // namespace berth::cli
