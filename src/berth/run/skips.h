// Why a task was skipped, as the store keeps it: in the place of what a task that ran depends on,
// which a skipped one has none of. Pure.
#pragma once

#include <string>
#include <string_view>

#include "berth/store/store.h"

namespace berth::run {

inline constexpr std::string_view kSkipped = "skipped\n";

inline std::string skip_record(std::string_view because) {
  return std::string(kSkipped) + std::string(because);
}
/// "": nobody noted it, as in runs of an older Berth.
inline std::string skipped_because(const store::TaskRecord& task) {
  return task.depends.starts_with(kSkipped) ? task.depends.substr(kSkipped.size()) : "";
}
/// What the task depended on when it ran or was found in the cache; "": it did neither.
inline std::string_view depended_on(const store::TaskRecord& task) {
  return task.depends.starts_with(kSkipped) ? std::string_view() : task.depends;
}

}  // namespace berth::run
