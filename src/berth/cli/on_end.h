// `on_end` of a flow: a command that runs when a run has ended, was stopped or has failed, with
// what `berth show --json` says of the run in the file that BERTH_RUN_JSON names. It runs on this
// machine, in the flow's folder, by whoever has driven the run to its end. It runs at least once
// for each end: one that was killed with its runner runs again at `berth resume`.
#pragma once

#include "berth/run/context.h"
#include "berth/store/store.h"

namespace berth::cli {

/// Runs a process, passes on what it prints to standard error, and waits for it. Returns how it
/// ended: "" where it ended well, else "exit 3". interrupted: a stop signal came, and it is gone.
Result<std::string> run_to_its_end(os::Env& env, const os::SpawnSpec& spec);

/// Writes what `berth show --json` says of the run.
Status write_run_json(os::Env& env, run::Context& context, const store::RunRecord& record,
                      const std::string& file);

/// What follows from the end of a run: runs the command, unless it has run for this end, and starts
/// telling of the end (notify.h). What is wrong with the command, or its failure, is told on
/// standard error and changes nothing else; a further stop signal ends it.
void after_end(os::Env& env, run::Context& context, const store::RunRecord& record);

}  // namespace berth::cli
