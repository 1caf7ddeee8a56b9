// `on_end` of a flow: a command that runs when a run has ended, was stopped or has failed, with
// what `berth show --json` says of the run in the file that BERTH_RUN_JSON names. It runs on this
// machine, in the flow's folder, by whoever has driven the run to its end. It runs at least once
// for each end: one that was killed with its runner runs again at `berth resume`.
#pragma once

#include "berth/run/context.h"
#include "berth/store/store.h"

namespace berth::cli {

/// Runs the command, unless it has run for this end of the run. What is wrong with it, or its
/// failure, is told on standard error and changes nothing else; a further stop signal ends it.
void run_on_end(os::Env& env, run::Context& context, const store::RunRecord& record);

}  // namespace berth::cli
