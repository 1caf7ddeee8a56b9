// A run is driven to its end, by this process or by one in the background, and its results are
// printed. Failures are those of run::drive(); the message names the command that goes on.
#pragma once

#include <vector>

#include "berth/cli/output.h"
#include "berth/engine/context.h"
#include "berth/store/store.h"

namespace berth::cli {

/// Drives the run, shows its progress and prints its results. Returns the exit code. If `only`
/// names tasks, no other tasks are started. What needs somebody's consent is asked on a terminal.
Result<int> drive_to_end(os::Env& env, engine::Context& context, const store::RunRecord& record,
                         const Output& output, const std::vector<TaskNumber>& only = {});

/// Starts a runner in the background and prints the run's name. Returns the exit code.
Result<int> drive_detached(engine::Context& context, const store::RunRecord& record,
                           const Output& output);

/// Asks "question [y/N]" on the terminal. Returns false for any answer but yes, after a stop
/// signal, and where standard input or standard error is not a terminal.
bool is_confirmed(os::Env& env, const std::string& question);

}  // namespace berth::cli
