// A run is driven to its end by this process, or by one in the background, and the person is told
// what came of it. Failure: as run::drive() has it, with the command that goes on.
#pragma once

#include <vector>

#include "berth/run/site.h"
#include "berth/store/store.h"

namespace berth::cli {

/// Drives the run, shows how it goes and prints what it leaves; the exit code. `only`: no tasks but
/// these are started, where it names any. What must not be done unasked is asked on a terminal.
Result<int> drive_to_end(os::Env& env, run::Site& site, const store::RunRecord& record, bool json,
                         const std::vector<TaskNumber>& only = {});

/// Starts a runner in the background and prints the run's name.
Result<int> drive_detached(os::Env& env, run::Site& site, const store::RunRecord& record,
                           bool json);

/// Says on standard error what may still run on machines that did not answer; whether anything may.
Result<bool> tell_what_may_run(run::Site& site, const store::RunRecord& record);

}  // namespace berth::cli
