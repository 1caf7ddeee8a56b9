// What a person wants to see of a task, first of all when it failed: the command as it ran, where
// it ran, and the last that it printed.
#pragma once

#include <string>
#include <vector>

#include "berth/exec/messages.h"
#include "berth/run/state/context.h"
#include "berth/store/store.h"

namespace berth::run {

inline constexpr std::size_t kMostLastLines = 20;

struct TaskReport {
  std::string command{};  ///< As command_text() has it, with its names replaced; "": none ran yet.
  std::string directory{};          ///< On this machine; "" where it ran elsewhere, or is gone.
  store::Values params{};           ///< The values of its names, to be shown: as `command`.
  exec::Environment environment{};  ///< What the task had over the variables of its runner.
  /// The last lines of standard error, or where that is empty, of standard output; valid UTF-8
  /// without control characters.
  std::vector<std::string> last_lines{};
};

/// The words of a process as a person would write them: of a command for a shell, its script. To be
/// shown only: URLs are without their secrets.
std::string command_text(const std::vector<std::string>& words);

/// The report of the task's last attempt. What cannot be read any more, such as a log that was
/// removed, is left out. Failure: corrupt, where the store does not hold what was put there.
Result<TaskReport> report_of(Context& context, const store::RunRecord& run,
                             const store::TaskRecord& task);

}  // namespace berth::run
