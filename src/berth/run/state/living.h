// These functions (at_rest.cc) find out whether a run that no runner drives is still in use: its
// agents outlive the runner, its tasks may run on other machines, and the trials of a study are
// claimed.
//
// Threads: one. Failure: errors of the store and of files.
#pragma once

#include <string>
#include <vector>

#include "berth/run/state/context.h"

namespace berth::run {

/// Returns one sentence for each kind of process or claim of the run that is alive: "1 worker on
/// this machine is alive". The list is empty where nothing is. A worker of a run that has ended may
/// need a moment to exit, which this function waits for.
Result<std::vector<std::string>> find_living(Context& context, const store::RunRecord& run);

/// Returns when the run has ended; or, where it has not, when one of its tasks started or ended, or
/// one of its files was written, for the last time.
Result<Wall> last_activity(Context& context, const store::RunRecord& run);

}  // namespace berth::run
