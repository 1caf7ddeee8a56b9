// Another command of Berth at work, as a process of its own, while this one goes on: its output is
// told as it comes, and its end. It has this process's environment and directory.
//
// Ownership: refers to the Env; its end ends the command (SIGTERM). Threads: one; both functions
// are called in a turn of the loop, and may end this only in `ended`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/os/env.h"
#include "berth/os/loop.h"

namespace berth::cli {

class OwnChild {
 public:
  using Printed = std::function<void(std::string_view)>;
  using Ended = std::function<void(int exit_code)>;
  /// `words`: {"logs", "digits-3"}. What cannot be started says why and ends in the next turn.
  OwnChild(os::Env& env, const std::vector<std::string>& words, Printed printed, Ended ended);
  OwnChild(const OwnChild&) = delete;
  OwnChild& operator=(const OwnChild&) = delete;
  ~OwnChild();

 private:
  static constexpr int kNotStarted = 127;
  void read(os::Poll& poll, const os::Fd& fd);
  void on_exit();

  os::Env& env_;
  Printed printed_;
  Ended ended_;
  std::optional<os::Child> child_;
  os::Timer fails_{env_.loop(), [this] { ended_(kNotStarted); }};
  os::Poll exits_{env_.loop(), [this] { on_exit(); }};
  os::Poll prints_{env_.loop(), [this] { read(prints_, child_->out); }};
  os::Poll complains_{env_.loop(), [this] { read(complains_, child_->err); }};
};

}  // namespace berth::cli
