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
#include <vector>

#include "berth/exec/messages.h"
#include "berth/os/env.h"
#include "berth/os/loop.h"

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
  ~Command();

  /// nullopt: at work. Once.
  std::optional<CommandEnd> take();

 private:
  void on_exit();
  void on_deadline();
  void kill();
  void close();
  void read(os::Poll& poll, const os::Fd& fd, std::string& into, std::size_t most);
  void read_all();

  os::Env& env_;
  std::string name_;
  const Duration most_;  // time limit of the command
  std::function<void()> ended_;
  std::optional<os::Child> child_;  // at work
  CommandEnd outcome_;
  os::Poll exits_{env_.loop(), [this] { on_exit(); }};
  os::Poll prints_{env_.loop(), [this] { read_all(); }};
  os::Poll complains_{env_.loop(), [this] { read_all(); }};
  os::Timer late_{env_.loop(), [this] { on_deadline(); }};
};

}  // namespace berth::remote
