// What a Runs has: the store of runs, and the `berth` program that drives them in processes of
// their own (run.cc). Runs that this process drives itself are in drive.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "berth/exec/messages.h"
#include "berth/run.h"
#include "berth/run/context.h"

namespace berth {

struct __attribute__((visibility("hidden"))) Runs::State {
  std::unique_ptr<os::Env> env = os::posix_env();
  run::Context context;
  std::string program;
  std::string state_directory;  // that was asked for; "": the environment says

  /// What `berth WORDS` prints. Errors: what it says where it does not do it.
  Result<std::string> berth(const std::vector<std::string>& words, const Command& over = {}) const;
  /// The name of the run that `berth run --detach --json` has started.
  Result<std::string> start(const std::vector<std::string>& words, const Command& over) const;
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
