// The `on_end:` of a flow: a command that runs after a run has ended, was stopped or has failed.
// The file that BERTH_RUN_JSON names has what `berth show --json` prints about the run. The process
// that drove the run to its end runs the command, on this machine and in the flow's directory. It
// runs at least once for each end: a command that was killed with its runner runs again at `berth
// resume`.
#pragma once

#include <string>

#include "berth/engine/process.h"
#include "berth/run/state/context.h"
#include "berth/store/store.h"

namespace berth::engine {

/// Writes what `berth show --json` prints about the run.
Status write_run_json(run::Context& context, const store::RunRecord& record,
                      const std::string& file);

/// Runs the `on_end` command of the run, unless it has run for this end. Its output goes to
/// `print`. Errors: io, if the command failed; interrupted, if a stop signal ended it.
Status run_on_end(run::Context& context, const store::RunRecord& record, const Print& print);

}  // namespace berth::engine
