// The tasks of a run that failed, each told whole: what it is called, the command as it ran, where,
// how it ended, the last that it printed, and where to read on.
#pragma once

#include <string>
#include <vector>

#include "berth/run/task_report.h"

namespace berth::cli {

struct Failure {
  std::string id;     ///< "count-2/map/A".
  std::string cause;  ///< "exit 1".
  std::int64_t attempts = 0;
  run::TaskReport report;
};

/// The first of the tasks that failed, `most` of them at most, in the order in which they failed.
Result<std::vector<Failure>> failures_of(run::Context& context, const store::RunRecord& run,
                                         const std::vector<store::TaskRecord>& tasks,
                                         std::size_t most);
Result<Failure> failure_of(run::Context& context, const store::RunRecord& run,
                           const store::TaskRecord& task);

/// Several lines; the last names the commands that tell more.
std::string failure_text(const Failure& failure);
/// The lines of it that say what ran and what it printed.
std::string report_text(const run::TaskReport& report);

}  // namespace berth::cli
