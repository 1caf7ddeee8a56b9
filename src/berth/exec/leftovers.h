// Leftovers are processes that a task has started and that live on after it: daemons, children that
// left its process group or session, descendants with another environment. Where a control group
// contains a task the kernel ends them; elsewhere these functions find and end them.
//
// A worker adopts the orphans of its tasks (Env::adopt_orphans), so every leftover is its child
// or a descendant of one. An orphan belongs to the task whose mark is in its environment
// (BERTH_ALLOC, which names the worker and the attempt), or to the task that leads its process
// group or session. Of any other orphan only its start is known: it belongs to a task that had
// started before.
//
// After the death of a worker, the marks in the environment are all that is left.
//
// Threads: one. Failure: what cannot be read is left alone.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/ids.h"
#include "berth/os/env.h"

namespace berth::exec {

/// The variable of a shell that a person opened in a task's directory, with the task's variables. A
/// process with it, or with an ancestor that has it, is never a leftover.
inline constexpr std::string_view kShellVariable = "BERTH_SHELL";

/// A task of this worker whose processes stay.
struct RunningTask {
  Token token;
  pid_t leader = 0;  ///< Its process group, and maybe its session.
};

/// Which orphans without any mark are leftovers.
enum class Unmarked : std::uint8_t {
  kept,   ///< None: this process has started more than tasks.
  ended,  ///< Those that started before every running task: this process exists for tasks.
};

/// Sends KILL to the adopted orphans of the ended attempts, and to those that these leave, in a
/// bounded number of rounds. `running` are the other tasks of this process where it exists for
/// tasks (Unmarked::ended); every orphan that belongs to none of them goes then. Returns the pids
/// of those that have not gone yet; the caller calls again after a moment.
std::vector<pid_t> end_adopted(os::Env& env, std::span<const Token> ended,
                               std::span<const RunningTask> running, Unmarked unmarked);

/// A process and what its environment says.
struct MarkedProcess {
  os::ProcessIdentity identity;
  std::optional<Token> token;  ///< Of the attempt that it belongs to.
};

/// Ends all processes with that entry in their environment ("BERTH_RUN_DIR=/x") for which `chosen`
/// returns true, and their descendants that have no such variable; it looks again until none is
/// left, for some seconds at most. What a person started from a shell in a task stays. Returns how
/// many were ended.
Result<int> end_marked(os::Env& env, const std::string& mark,
                       const std::function<bool(std::optional<Token>)>& chosen);

/// Ends all processes of this user whose worker (BERTH_ALLOC) has died on this machine. Returns how
/// many were ended.
int end_abandoned(os::Env& env);

}  // namespace berth::exec
