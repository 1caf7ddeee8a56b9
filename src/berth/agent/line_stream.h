// One end of a connection that speaks in lines. Reads and writes what there is and never blocks.
//
// Ownership: owns its descriptor. Threads: one. Failure: an Error ends the connection; the other
// side's end shows in ended(). A line beyond kMessageMost is invalid.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/os/env.h"

namespace berth::agent {

inline constexpr std::size_t kMessageMost = 16 << 20;  // bytes of a line

class LineStream {
 public:
  /// What is sent before open() waits for it.
  explicit LineStream(os::Env& env) : env_(&env) {}
  void open(os::Fd fd) { fd_ = std::move(fd); }
  void close() { fd_.reset(); }
  bool is_open() const { return static_cast<bool>(fd_); }
  /// The other side has closed, or this one; lines that came before may be left.
  bool ended() const { return ended_ || !fd_; }

  /// A line without its end; or whole lines as they are.
  void send(std::string_view line);
  void send_lines(std::string_view lines) { out_ += lines; }
  std::size_t unsent() const { return out_.size() - sent_; }

  /// Two watches, always.
  void watch(std::vector<os::Watch>& watches, bool read = true) const;
  /// With the two watches: reads and writes what can be.
  Status turn(std::span<const os::Watch> watches);
  /// A connection on which nothing can be sent any more has ended; what had come can be taken.
  Status write();
  /// The next whole line, without its end; good until the next turn() or write().
  std::optional<std::string_view> next();

 private:
  Status read();

  os::Env* env_;
  os::Fd fd_;
  std::string in_, out_;
  std::size_t taken_ = 0;     // of in_
  std::size_t searched_ = 0;  // of in_: there is no line's end before, but in what is taken
  std::size_t sent_ = 0;      // of out_
  bool ended_ = false;
};

}  // namespace berth::agent
