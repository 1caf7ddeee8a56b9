// An agent that listens announces itself twice: by one line to the process that started it, and by
// a file in its directory for runners that come later. Both are written and read here. Pure.
#pragma once

#include <string>
#include <string_view>

#include "berth/base/result.h"
#include "berth/machine/block.h"
#include "berth/machine/ledger/ledger.h"

namespace berth::agent {

/// A process that a launcher waits for writes a text that begins with this, if all is well.
inline constexpr std::string_view kReady = "ready ";

/// "ready PID STARTED\n". The launcher hands the alloc over to that process.
std::string ready_line(const os::ProcessIdentity& agent);
/// Failure: invalid, where a launcher printed something else, which the message quotes.
Result<os::ProcessIdentity> parse_ready(std::string_view said);

/// The agent's file, agent.json.
struct AgentFile {
  os::ProcessIdentity process;
  std::string boot;  ///< The machine's boot that the agent belongs to.
  std::int64_t version = 0;
  machine::Block block;
  machine::AllocId alloc;  ///< 0: the agent looks after none.
  std::string host = {};   ///< The machine's name; empty: an older agent did not tell it.
};
inline constexpr std::size_t kAgentFileMost = 64 << 10;  ///< Bytes of its text.
std::string to_json(const AgentFile& file);
/// invalid: not what to_json() gives.
Result<AgentFile> parse_agent_file(std::string_view text);

}  // namespace berth::agent
