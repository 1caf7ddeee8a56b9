// A description of a process that Env::spawn() starts. It is not in env.h, because few files start
// processes.
//
// Ownership: the caller owns the files that the description refers to, and keeps them open during
// the call. Threads: any.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "berth/os/env.h"

namespace berth::os {

/// A process to start. It is killed when the thread that started it ends. Its stdin is `input`, and
/// its stdout and stderr are pipes, whose read ends spawn() returns. A process that `talks` instead
/// has one end of a socket as both stdin and stdout; Child::out is the other end.
struct SpawnSpec {
  std::vector<std::string> argv;  ///< argv[0] is looked up in the PATH of `environment`.
  std::vector<std::pair<std::string, std::string>> environment;  ///< The whole environment.
  std::string directory;                                         ///< Absolute.
  std::vector<int> cores{};          ///< The CPU cores it may use; empty: those of this process.
  std::span<const Fd> join_files{};  ///< Files of control groups; the child writes "0" into each.
  const Fd* group = nullptr;         ///< Directory of a v2 control group in which the child begins.
  bool talks = false;
  std::string input = {};    ///< A file that becomes its stdin; "": /dev/null.
  std::string program = {};  ///< The file that is executed in place of argv[0]; "": argv[0].
  /// A file (mode 0600) to which stdout and stderr are appended; Child::out and err are empty then.
  std::string log = {};
  /// The process leads a separate session, is not a child of this process, and survives it. Only
  /// Child::pid and Child::exited are valid for it; reap() fails.
  bool is_detached = false;
};

}  // namespace berth::os
