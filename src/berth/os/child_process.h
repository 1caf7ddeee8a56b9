// A process whose output is passed on as it arrives, and whose end is reported: the one loop that
// reads what a process prints.
//
// Ownership: refers to the Env and the Loop; its destructor kills the process. Threads: one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "berth/os/loop.h"
#include "berth/os/spawn.h"

namespace berth::os {

class ChildProcess {
 public:
  enum class Stream : std::uint8_t { out, err };
  using Print = std::function<void(Stream stream, std::string_view text)>;  ///< Or none.
  using End = std::function<void(const Result<ExitStatus>& status)>;

  /// Both functions are called in a turn of the loop. `end` is called once, last, and may destroy
  /// this object. It receives an error of spawn() in the next turn. The destructor sends SIGTERM
  /// and waits `grace` before it kills the process; 0: it kills immediately.
  ChildProcess(Env& env, Loop& loop, const SpawnSpec& spec, Print print, End end,
               Duration grace = {});
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() { kill(); }

  void signal(int signal) {
    if (child_) (void)env_.signal_group(child_->pid, signal);
  }
  /// Ends the process as the destructor does. Neither function is called any more.
  void kill();

 private:
  std::size_t read(Stream stream);
  void on_exit();
  void finish(const Result<ExitStatus>& status);

  Env& env_;
  Print print_;
  End end_;
  Duration grace_;
  std::optional<Child> child_;
  std::optional<Error> error_;  // of spawn()
  Poll exits_, prints_, complains_;
  Timer fails_;
};

/// Runs a process and waits for it. Errors: those of Env::spawn() and Env::wait(); interrupted, if
/// a stop signal arrived meanwhile; busy, at `until`. The process is killed then.
Result<ExitStatus> run_child(Env& env, const SpawnSpec& spec, const ChildProcess::Print& print,
                             std::optional<Mono> until = std::nullopt);

}  // namespace berth::os
