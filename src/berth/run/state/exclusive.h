// The right to change a run. The process that has it is the only one that drives, removes or
// reopens the run, on this machine and on all machines that share its store.
//
// Threads: one. Failure: busy where another process has the right, not_found where the run was
// removed while this process waited for it; errors of the store and of files.
#pragma once

#include <memory>
#include <string>

#include "berth/os/env.h"
#include "berth/run/state/context.h"
#include "berth/store/database.h"

namespace berth::run {

struct Exclusive {
  store::RunRecord record;  ///< As it is since no other process changes it.
  os::Fd lock;
  std::unique_ptr<store::Claim> claim;
};

/// Waits up to two seconds for a runner that was killed and has not yet exited.
Result<Exclusive> take_run(Context& context, const std::string& run_name);

}  // namespace berth::run
