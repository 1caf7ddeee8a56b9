// A Terminal is the terminal of this process while a program draws on all of it: keys come one by
// one and unechoed, and what stood there before comes back at the end. It is given back in any way
// in which the process may end but SIGKILL, and while the process is stopped (Ctrl-Z, SIGTSTP);
// once it goes on (fg) it is taken again, and the program is told to draw anew.
//
// Ownership: a process has one Terminal at a time; it outlives no Env. install_stop_signals() comes
// before it. Threads: one. Failure: open() fails where standard output is no terminal; the others
// do not, but read() says when the terminal is gone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "berth/os/env.h"

namespace berth::os {

class Terminal {
 public:
  struct Size {
    std::size_t rows = 24, columns = 80;
    bool operator==(const Size&) const = default;
  };

  /// Takes the terminal of standard output. Keys come from standard input where that is a terminal
  /// too; else none do. A process in the background is stopped until it is in the foreground.
  static Result<std::unique_ptr<Terminal>> open(Env& env);
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  Size size() const;

  /// Readable when somebody has typed; -1: there are no keys.
  int input() const { return in_.number(); }
  /// What was typed; "" while nothing was, nullopt: the terminal is gone.
  std::optional<std::string> read();

  /// Readable when take_changes() has something to do.
  int changes() const { return changes_.number(); }
  /// Stops the process if that was asked for, and takes the terminal again once it goes on. Returns
  /// whether all has to be drawn anew, as the size has changed or others have drawn.
  bool take_changes();

  /// Adds to what is on its way to the terminal, and writes what that takes without blocking.
  void write(std::string_view bytes);
  /// Writes on. A slow terminal leaves some: watch output() for writing until nothing is.
  void flush();
  bool is_flushed() const { return waiting_.empty(); }
  int output() const { return out_.number(); }

 private:
  Terminal(Env& env, Fd in, Fd out, Fd changes)
      : env_(env), in_(std::move(in)), out_(std::move(out)), changes_(std::move(changes)) {}

  Env& env_;
  Fd in_, out_, changes_;
  std::string waiting_;
};

}  // namespace berth::os
