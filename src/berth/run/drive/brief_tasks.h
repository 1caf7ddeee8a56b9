// BriefTasks learns which tasks are brief from those that have ended. Tasks whose names differ only
// in their number (digits-3/17, count-2/count/4) form a series; a series is brief when enough of
// its tasks in a row have ended at once. Pure.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "berth/base/ids.h"
#include "berth/base/time.h"

namespace berth::run {

/// The series of a task: "digits-3" for "digits-3/17"; "" for a name without a number, which is not
/// one of many.
std::string_view series_of(std::string_view task_name);

class BriefTasks {
 public:
  void began(Token token, std::string_view task_name, Mono now);
  void ended(Token token, Mono now);
  /// About how long a task of this series takes; 0 where it is not known to be brief.
  Duration typical(std::string_view task_name) const;
  /// Whether an attempt that has begun turns out not to be brief.
  bool overdue(Token token, Mono now) const;
  bool are_any() const { return brief_series_ > 0; }

 private:
  struct Series {
    int in_a_row = 0;
    Duration typical{};
  };
  struct Begun {
    std::string series;
    Mono at;
  };
  void set(Series& series, int in_a_row);

  std::unordered_map<std::string, Series> series_;
  std::unordered_map<std::int64_t, Begun> begun_;  // by token
  int brief_series_ = 0;
};

}  // namespace berth::run
