// Answers for passive trials that a person types at the terminal, or a program writes to a pipe:
// each line of standard input answers the question that has waited longest.
#pragma once

#include <deque>
#include <functional>
#include <string>

#include "berth/engine/runs/drive.h"
#include "berth/os/loop.h"

namespace berth::cli {

class Answering {
 public:
  /// `complain` is told what was wrong with answers.
  Answering(os::Env& env, std::function<void(const std::string&)> complain)
      : env_(env), complain_(std::move(complain)) {}

  void add(engine::Question question);
  /// Removes the question of a trial that was answered in another way, or is over.
  void drop(const std::string& label);
  /// Whether questions are open and standard input may still bring answers.
  bool listening() const { return static_cast<bool>(in_) && !questions_.empty(); }

 private:
  void read();
  void answer();
  void listen();

  os::Env& env_;
  std::function<void(const std::string&)> complain_;
  os::Fd in_;
  bool opened_ = false;
  std::string typed_;  // part of a line, and lines that no question waits for yet
  std::deque<engine::Question> questions_;
  os::Poll input_{env_.loop(), [this] { read(); }};
  os::Timer looks_{env_.loop(), [this] { read(); }};
};

}  // namespace berth::cli
