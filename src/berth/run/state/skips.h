// Why a task was skipped, as the store keeps it: in the place of what a task that ran depends on,
// which a skipped one has none of. Pure.
#pragma once

#include <string>
#include <string_view>

#include "berth/store/store.h"

namespace berth::run {

inline constexpr std::string_view kSkipped = "skipped\n";

/// Follows kSkipped where a run was done although a task before this one failed.
inline constexpr std::string_view kAfterFailure = "after a failure\n";

inline std::string skip_record(std::string_view because) {
  return std::string(kSkipped) + std::string(because);
}
/// The record of a task that was skipped because tasks before it failed, as their run allows.
inline std::string skip_record_after_failure() {
  return skip_record(std::string(kAfterFailure) + "a task that it waits for failed");
}
inline bool was_skipped_after_failure(const store::TaskRecord& task) {
  return task.state == store::TaskState::skipped &&
         task.depends.starts_with(std::string(kSkipped) + std::string(kAfterFailure));
}
/// "": nobody noted it, as in runs of an older Berth.
inline std::string skipped_because(const store::TaskRecord& task) {
  if (!task.depends.starts_with(kSkipped)) return "";
  std::string because = task.depends.substr(kSkipped.size());
  return because.starts_with(kAfterFailure) ? because.substr(kAfterFailure.size()) : because;
}
/// What the task depended on when it ran or was found in the cache; "": it did neither.
inline std::string_view depended_on(const store::TaskRecord& task) {
  return task.depends.starts_with(kSkipped) ? std::string_view() : task.depends;
}

}  // namespace berth::run
