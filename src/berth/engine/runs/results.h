// The results of a run that was driven to its end, and the exit code that says how it ended.
#pragma once

#include <vector>

#include "berth/engine/context.h"
#include "berth/engine/queries/shown_run.h"
#include "berth/experiment/program.h"
#include "berth/flow/flow.h"
#include "berth/run/flows/stale_outputs.h"

namespace berth::engine {

struct RunResults {
  ShownRun shown;  ///< With the failures, at most `most_failures`.
  std::vector<store::TaskRecord> tasks = {};
  experiment::Program program = {};  ///< Empty for a flow.
  flow::Flow flow = {};              ///< Empty unless it is a flow.
  run::StaleOutputs stale = {};      ///< Files of an earlier run that the flow no longer writes.
  int exit_code = 0;
};
/// Reads the results. Errors: those of the store; corrupt.
Result<RunResults> results_of(Context& context, const store::RunRecord& record,
                              std::size_t most_failures);

/// Starts a runner of the run in the background, and reads the run. Errors: those of
/// start_detached() and the store.
Result<RunResults> start_in_background(Context& context, const store::RunRecord& record);

/// Records that the user allows sending the directory of the run, whatever its size.
Status confirm_sending(Context& context, const std::string& run);

}  // namespace berth::engine
