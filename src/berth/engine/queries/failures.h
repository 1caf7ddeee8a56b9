// The failed tasks of a run with what a reader needs to understand each: its name, the command as
// it ran, its directory, how it ended, and its last lines of output.
#pragma once

#include <string>
#include <vector>

#include "berth/run/state/task_report.h"

namespace berth::engine {

struct Failure {
  std::string id;     ///< "count-2/map/A".
  std::string cause;  ///< "exit 1".
  std::int64_t attempts = 0;
  run::TaskReport report{};
};

/// Returns the first `most` failed tasks, in the order in which they failed.
Result<std::vector<Failure>> failures_of(run::Context& context, const store::RunRecord& run,
                                         const std::vector<store::TaskRecord>& tasks,
                                         std::size_t most);

}  // namespace berth::engine
