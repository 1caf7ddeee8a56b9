// How long the tasks of a run take, as far as is known: by those of the same step that have ended,
// or where none has, by those of the run of the same name before it; and by their time limits.
//
// Plain values; read() asks the store. Threads: any.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "berth/run/state/context.h"
#include "berth/schedule/expected_time.h"

namespace berth::run {

class TaskTimes {
 public:
  struct Expected {
    Duration left{};
    bool is_limit = false;  ///< It is the most, not what is likely.
    std::string by = {};    ///< "12 ended tasks of digits-3"; "the time limit of train-1, 1h00m".
  };

  /// `tasks` are all of the run's, `runs` all of the store's, as Store::runs() has them. A run that
  /// cannot be read any more has no limits.
  static TaskTimes read(Context& context, const store::RunRecord& run,
                        std::span<const store::TaskRecord> tasks,
                        std::span<const store::RunRecord> runs);

  /// How much longer the task of this label takes, which has run for `elapsed`. nullopt: unknown.
  std::optional<Expected> left(std::string_view label, Duration elapsed) const;

 private:
  struct Step {
    schedule::KnownTimes times;
    std::string of;  // the run whose tasks they are
  };
  std::string name_;
  bool has_steps_ = false;
  std::map<std::string, Step, std::less<>> steps_;
};

/// The step that a task of a flow belongs to; of other runs all tasks are of one, "".
std::string_view step_of(bool is_flow, std::string_view label);

}  // namespace berth::run
