// These functions are for an agent that a batch system started: one finds out what that gave it,
// the other removes what its runner may have left in the queue.
//
// Threads: one. Failure: the log says so.
#pragma once

#include <string>
#include <vector>

#include "berth/machine/machine.h"
#include "berth/os/env.h"

namespace berth::agent {

/// Waits until the process `whom` has ended in any way. Then it runs `command` (argv[0] is looked
/// up in PATH; there is no shell) until that succeeds, with growing pauses, for a day at most.
Status stand_guard(os::Env& env, const os::ProcessIdentity& whom,
                   const std::vector<std::string>& command);

/// Completes a block that was asked for by numbers only: it gets the cores that this process is
/// bound to, where they are as many, and the devices that the batch system names in the
/// environment.
machine::Block settle_in(os::Env& env, machine::Block block);

}  // namespace berth::agent
