// The names of what is in an agent's directory and in a lease directory. The shell texts of
// remote/slurm/slurm_words.cc have to agree with them.
#pragma once

#include <string>

namespace berth::agent {

// In an agent's directory; the journal names its own files (journal.h).

/// A living agent holds a lock on this file.
inline std::string lock_file(const std::string& directory) {
  return directory + "/lock";
}
/// The Unix socket on which the agent listens.
inline std::string socket_file(const std::string& directory) {
  return directory + "/socket";
}
/// What the agent says of itself to runners that come later (startup.h).
inline std::string agent_file(const std::string& directory) {
  return directory + "/agent.json";
}
/// What the agent writes to its standard error, and notes for people.
inline std::string log_file(const std::string& directory) {
  return directory + "/log";
}

/// Files that its tasks need while they run (exec::ProcessWorker::keep_files_in).
inline std::string commands_directory(const std::string& directory) {
  return directory + "/commands";
}

// In a lease directory: that of an alloc which another machine leased here.

inline std::string agent_directory(const std::string& lease_directory) {
  return lease_directory + "/agent";
}
/// The files of the alloc's tasks.
inline std::string work_directory(const std::string& lease_directory) {
  return lease_directory + "/work";
}

}  // namespace berth::agent
