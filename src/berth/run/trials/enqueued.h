// Points that somebody adds to the search of a run while its runner drives it, or before a resume.
// A point stands in a file of RUN/enqueued until its trial is recorded: so none is lost, and none
// becomes two trials, whenever the runner dies.
//
// Ownership: the Env outlives it. Threads: one. Failure: errors of the file system.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/base/ids.h"
#include "berth/experiment/program.h"
#include "berth/os/env.h"

namespace berth::run {

/// Leaves a point for the runner, durably. Returns the file.
Result<std::string> leave_point(os::Env& env, const std::string& run_directory,
                                const experiment::Values& point);

class Enqueued {
 public:
  Enqueued(os::Env& env, std::string directory) : env_(env), directory_(std::move(directory)) {}

  /// A runner that has died may have taken points: those of recorded trials, which are the first
  /// `recorded` ones, are done with, the others wait again.
  Status take_over(std::int64_t recorded);
  /// The point that has waited longest, which is trial `number` from now on; nullopt: none waits.
  Result<std::optional<experiment::Values>> take(TaskNumber number);
  /// All trials that took a point are recorded.
  void forget_taken();

 private:
  os::Env& env_;
  const std::string directory_;
  std::vector<std::string> taken_;  // files
};

}  // namespace berth::run
