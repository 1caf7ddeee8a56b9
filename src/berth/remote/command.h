// One command at work that nobody waits for: the loop says when it is over. It has a deadline, and
// its output a bound.
//
// Ownership: refers to Env; its end kills the command. Threads: one. Failure: the outcome's error,
// where the command could not be started, took too long or said too much; what it complained of and
// its exit code otherwise.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/exec/messages.h"
#include "berth/os/child_process.h"

namespace berth::remote {

struct CommandEnd {
  int exit_code = 0;                // 128 plus the signal that ended it
  std::string out = {}, err = {};   // its output and its error output
  std::optional<Error> error = {};  // it did not start, took too long or printed too much
  bool good() const { return !error && exit_code == 0; }
};

class Command {
 public:
  /// `ended` is called in a turn of the loop once take() has the outcome; it does not end this.
  Command(os::Env& env, std::vector<std::string> argv, exec::Environment environment, Duration most,
          std::function<void()> ended);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  /// nullopt: at work. Once.
  std::optional<CommandEnd> take();

 private:
  void on_print(os::ChildProcess::Stream stream, std::string_view text);
  void on_end(const Result<os::ExitStatus>& status);
  void close();

  std::string name_;
  const Duration most_;  // time limit of the command
  std::function<void()> ended_;
  CommandEnd outcome_;
  std::optional<os::ChildProcess> child_;  // while it runs
  os::Timer late_;
};

}  // namespace berth::remote
