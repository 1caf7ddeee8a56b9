// The state of a Runs: the store of runs, and the `berth` program that drives them in the
// background (run.cc). drive.cc has the runs that this process drives itself.
#pragma once

#include <memory>
#include <string>

#include "berth/engine/runs/submission.h"
#include "berth/exec/messages.h"
#include "berth/run.h"
#include "berth/run/state/context.h"

namespace berth {

struct __attribute__((visibility("hidden"))) Runs::State {
  std::unique_ptr<os::Env> env = os::posix_env();
  run::Context context;
  std::string state_directory;  // as requested; "": the one that the environment names
  std::function<void(const std::string& note)> on_note = {};  // as in RunsOptions

  /// Passes notes to `on_note`, if there is one; its exceptions are ignored.
  engine::Note note() const;

  /// Checks and records the run. Errors: as engine::read_submission() and engine::check().
  Result<store::RunRecord> record(const engine::RunRequest& request);
  /// Records the run and starts its runner. Returns its name.
  Result<std::string> start(const engine::RunRequest& request);
  /// What the task printed on that stream.
  Result<std::string> printed(const store::RunRecord& record, const store::TaskRecord& task,
                              exec::Stream stream);
};

namespace library {

/// The context in that state directory, or where the environment says.
Result<run::Context> open_runs(os::Env& env, const std::string& state_directory);

Run run_of(const run::Context& context, const store::RunRecord& record);

inline Task task_of(const store::TaskRecord& record) {
  return {record.label,    std::string(store::name(record.state)),
          record.attempts, record.exit_code,
          record.params,   record.metrics};
}

}  // namespace library
}  // namespace berth
