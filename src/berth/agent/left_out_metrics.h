// The metrics that an agent did not keep, because no runner listened and its journal was full. Of
// each attempt and name the last value is remembered, so that the result of the attempt is right.
//
// Memory: a bounded number of names for each attempt. Threads: one. Pure.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "berth/exec/messages.h"

namespace berth::agent {

class LeftOutMetrics {
 public:
  static constexpr std::size_t kNamesMost = 1000;  // of an attempt

  void add(exec::Metric metric) {
    Attempt& attempt = attempts_[metric.token];
    ++attempt.count;
    attempt.task = metric.task;
    const auto known = attempt.last.find(metric.name);
    if (known != attempt.last.end())
      known->second = std::move(metric);
    else if (attempt.last.size() < kNamesMost)
      attempt.last.emplace(metric.name, std::move(metric));
  }
  bool empty() const { return attempts_.empty(); }

  /// Returns the last values of the attempt and a note for people; nothing where none was left out.
  std::vector<exec::FromWorker> take(Token token) {
    std::vector<exec::FromWorker> messages;
    const auto found = attempts_.find(token);
    if (found == attempts_.end()) return messages;
    Attempt& attempt = found->second;
    const auto left_out = attempt.count - static_cast<std::int64_t>(attempt.last.size());
    for (auto& [_, metric] : attempt.last) messages.emplace_back(std::move(metric));
    messages.emplace_back(exec::Notice{
        attempt.task, token,
        fmt::format("{} metrics were left out, and only the last value of each name was kept: no "
                    "runner listened, and the agent's journal was full",
                    left_out)});
    attempts_.erase(found);
    return messages;
  }
  std::vector<exec::FromWorker> take_all() {
    std::vector<exec::FromWorker> messages;
    while (!attempts_.empty())
      for (auto& message : take(attempts_.begin()->first)) messages.push_back(std::move(message));
    return messages;
  }

 private:
  struct Attempt {
    TaskNumber task;
    std::int64_t count = 0;
    std::map<std::string, exec::Metric> last;
  };
  std::map<Token, Attempt> attempts_;
};

}  // namespace berth::agent
