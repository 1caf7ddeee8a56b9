// One command at work that nobody waits for: look() at it now and then. It has a deadline, and its
// output a bound.
//
// Ownership: refers to Env; its end kills the command. Threads: one. Failure: the outcome's error,
// where the command could not be started, took too long or said too much; what it complained of and
// its exit code otherwise.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/exec/messages.h"
#include "berth/os/env.h"

namespace berth::remote {

struct CommandEnd {
  int exit_code = 0;  // 128 and the signal, where one ended it
  std::string out, err;
  std::optional<Error> error;
  bool good() const { return !error && exit_code == 0; }
};

class Command {
 public:
  Command(os::Env& env, std::vector<std::string> argv, exec::Environment environment,
          Duration most);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command();

  /// nullopt: at work. Once.
  std::optional<CommandEnd> look();
  /// Sleeps until it is done or `until`.
  void wait(Mono until);

 private:
  void end();
  void read(const os::Fd& fd, std::string& into, std::size_t most);

  os::Env* env_;
  std::string name_;
  std::optional<os::Child> child_;
  CommandEnd outcome_;
  Mono until_;
};

}  // namespace berth::remote
