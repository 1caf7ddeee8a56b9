// Why a run or one of its tasks waits, runs, failed, or did not have to run.
#pragma once

#include <string>
#include <vector>

#include "berth/engine/queries/run_explanation.h"
#include "berth/run/state/context.h"
#include "berth/run/state/task_report.h"
#include "berth/store/store.h"

namespace berth::engine {

struct TaskExplanation {
  store::RunRecord run;
  store::TaskRecord task{};
  std::vector<store::AttemptRecord> attempts{};
  std::string why{};  ///< "failed: exit 3"; "waiting: 2 wait ahead of it, …".
  /// Of a flow: why it ran, or did not have to; a sentence each.
  std::vector<std::string> because{};
  run::TaskReport report{};  ///< Its command, directory and last output.
};
/// Explains the task with this label. It asks this machine as a runner does, which may take seconds
/// with GPUs. Errors: not_found.
Result<TaskExplanation> explain_task(run::Context& context, const store::RunRecord& run,
                                     const std::string& label);

/// Explains the whole run: what its tasks wait for, why tasks failed, and how it ended.
Result<RunExplanation> explain_run(run::Context& context, const store::RunRecord& run);

}  // namespace berth::engine
