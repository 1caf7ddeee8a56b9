// What the main() of berth and of berth-server have in common.
#pragma once

#include <span>

#include "berth/cli/options.h"

namespace berth::cli {

/// Runs the command that the command line names, prints what went wrong on standard error and
/// returns the exit code of the process. One of the commands has no name.
int run_program(std::span<const Command> commands, int count, char** values);

}  // namespace berth::cli
