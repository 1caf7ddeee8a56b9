// The command that starts an agent, `berth-agent start DIR --block BLOCK …`, as pool.cc and link.cc
// write it. Pure.
#pragma once

#include <span>
#include <string_view>

#include "berth/agent/agent.h"

namespace berth::agent {

struct StartCommand : AgentOptions {
  bool stay = false;  ///< The agent stays in the process that a batch system started.
};

/// The words after `start`. usage: one of them is wrong or missing, and which.
Result<StartCommand> parse_start_command(std::span<const std::string_view> words);

}  // namespace berth::agent
