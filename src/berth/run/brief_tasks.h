// Which tasks are brief, as those that ended have taught: of tasks that differ by their number only
// (digits-3/17, count-2/count/4: a series) so many in a row have ended at once. Pure.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "berth/base/ids.h"
#include "berth/base/time.h"

namespace berth::run {

/// "digits-3" of "digits-3/17"; "" of a name without a number, which is not one of many.
std::string_view series_of(std::string_view task_name);

class BriefTasks {
 public:
  void began(Token token, std::string_view task_name, Mono now);
  void ended(Token token, Mono now);
  /// What one of the task's series takes, about; 0: it is not known to be brief.
  Duration typical(std::string_view task_name) const;
  /// One that has begun is not brief after all.
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
