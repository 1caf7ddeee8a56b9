// How posix_env() starts a process: with the semantics of vfork, so that the cost does not grow
// with the size of this process.
#pragma once

#include "berth/os/spawn.h"

namespace berth::os {

Result<Child> spawn_posix(Env& env, const SpawnSpec& spec);
Result<std::optional<ExitStatus>> reap_posix(const Child& child);
bool has_exited_posix(const Child& child);

/// When a process started, in clock ticks since the boot, by the text of its /proc/PID/stat;
/// nullopt for a zombie, and for a text that has no such field.
std::optional<std::int64_t> start_time_posix(std::string_view stat);

// The parts of Env of these names.

Status signal_process_posix(Env& env, const ProcessIdentity& process, int signal);
Status adopt_orphans_posix();
std::vector<pid_t> adopted_posix(Env& env);

bool group_alive_posix(Env& env, pid_t group);

/// An errno as an Error of the right kind: "what: No such file or directory".
std::unexpected<Error> errno_error(int number, std::string_view what);

}  // namespace berth::os
