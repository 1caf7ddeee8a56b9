// Drives a run as every client does: with its notifications and its `on_end` command.
#pragma once

#include <string>
#include <vector>

#include "berth/engine/process.h"
#include "berth/run/drive/runner.h"

namespace berth::engine {

// A client follows the run through an Observer: progress, ends of tasks, output, notes, and
// questions of passive trials.
using run::Observer;
using run::Progress;
using run::Question;
using run::TaskEnd;

/// Drives the run until it is done, failed or stopped (run::drive()), notifies its targets
/// meanwhile, and then does what conclude() does. If `only` is not empty, no other tasks are
/// started. `print` receives the output of the `on_end` command, and what is wrong with it or with
/// a notification. Errors: those of run::drive().
Result<store::RunRecord> drive(run::Context& context, const std::string& name,
                               run::Observer& observer, const Print& print,
                               const std::vector<TaskNumber>& only = {});

/// Runs the `on_end` command of a run that has ended, and starts notifying of the end; both only if
/// that has not been done for this end. A second stop signal ends the command. Failures are
/// reported to `print` and change nothing.
void conclude(run::Context& context, const store::RunRecord& record, const Print& print);

}  // namespace berth::engine
