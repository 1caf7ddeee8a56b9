// Answers for passive trials that a person types at the terminal, or a program writes to a pipe:
// each line of standard input answers the question that has waited longest.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "berth/run/runner.h"

namespace berth::cli {

class Answering {
 public:
  explicit Answering(os::Env& env) : env_(env) {}

  void add(run::Question question);
  /// Removes the question of a trial that was answered in another way, or is over.
  void drop(const std::string& label);
  /// Whether questions are open and standard input may still bring answers.
  bool listening() const { return static_cast<bool>(in_) && !questions_.empty(); }
  void watch(std::vector<os::Watch>& watches) const;
  /// Reads what has come, without blocking. Returns what was wrong with answers.
  std::vector<std::string> read();

 private:
  os::Env& env_;
  os::Fd in_;
  bool opened_ = false;
  std::string typed_;  // part of a line, and lines that no question waits for yet
  std::deque<run::Question> questions_;
};

}  // namespace berth::cli
