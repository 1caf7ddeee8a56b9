// Two commands that are about all others.
#pragma once

#include <vector>

#include "berth/cli/options.h"

namespace berth::cli {

/// berth complete -- WORD…: a line for each thing that the last word may become, with its help
/// behind a tab; ":files" and ":commands" leave it to the shell.
Command complete_command(const std::vector<Command>& commands);
/// berth manual: what every command says of itself, as JSON.
Command manual_command(const std::vector<Command>& commands);

}  // namespace berth::cli
