// What stands around an agent that a batch system started: what it was given there, and a guard for
// what its runner may leave in the queue.
//
// Threads: one. Failure: told in the log.
#pragma once

#include <string>
#include <vector>

#include "berth/machine/machine.h"
#include "berth/os/env.h"

namespace berth::agent {

/// Waits until a process has ended, however it did, and then runs a command (argv[0] by PATH, no
/// shell) until it succeeds, with growing pauses, for a day at most.
Status stand_guard(os::Env& env, const os::ProcessIdentity& whom,
                   const std::vector<std::string>& command);

/// Of a block that was asked for by numbers only: its cores where we are bound to just as many,
/// and its devices by the names that the batch system has put into our environment.
machine::Block settle_in(os::Env& env, machine::Block block);

}  // namespace berth::agent
