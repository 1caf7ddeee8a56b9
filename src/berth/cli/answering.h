// The person at the terminal, or a program behind a pipe, who answers for passive trials: each line
// of standard input is the answer to the question that has waited longest.
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
  void drop(const std::string& label);  // it is answered, or no longer asked
  /// Whether somebody may be typing.
  bool listening() const { return static_cast<bool>(in_) && !questions_.empty(); }
  void watch(std::vector<os::Watch>& watches) const;
  /// Takes what has come, and returns what there is to say of it.
  std::vector<std::string> read();

 private:
  os::Env& env_;
  os::Fd in_;
  bool opened_ = false;
  std::string typed_;  // what has come of a line, and lines that no question waits for yet
  std::deque<run::Question> questions_;
};

}  // namespace berth::cli
