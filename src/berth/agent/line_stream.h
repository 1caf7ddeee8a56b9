// A LineStream is one end of a connection that speaks in lines. It reads and writes what there is,
// in turns of its Env's loop, and never blocks.
//
// Ownership: owns its descriptor. Threads: one. Failure: an Error ends the connection; the other
// side's end shows in ended(). A line beyond kMessageMost is invalid.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "berth/os/env.h"
#include "berth/os/loop.h"

namespace berth::agent {

inline constexpr std::size_t kMessageMost = 16 << 20;  // bytes of a line

class LineStream {
 public:
  /// `on_event` is called in a turn of the loop when something was read or the connection has
  /// ended; the error says why it can be used no longer.
  LineStream(os::Env& env, std::function<void(Status)> on_event);
  LineStream(const LineStream&) = delete;
  LineStream& operator=(const LineStream&) = delete;

  /// What was sent before is sent now.
  void open(os::Fd fd);
  void close();
  /// Closed, and empty, as it was first.
  void reset();
  bool is_open() const { return static_cast<bool>(fd_); }
  /// The other side has closed, or this one; lines that came before may be left.
  bool ended() const { return ended_ || !fd_; }
  /// Whether it reads; at first it does.
  void set_reading(bool reads);

  /// A line without its end; or whole lines as they are.
  void send(std::string_view line);
  void send_lines(std::string_view lines);
  std::size_t unsent() const { return out_.size() - sent_; }
  /// Sends what can be sent at once. A connection on which nothing can be sent any more has ended;
  /// what had come can be taken.
  Status write();
  /// The next whole line, without its end; good until the next turn of the loop or write().
  std::optional<std::string_view> next();

 private:
  Status read();
  void arm();

  os::Env* env_;
  std::function<void(Status)> on_event_;
  os::Fd fd_;
  std::string in_, out_;
  std::size_t taken_ = 0;     // of in_
  std::size_t searched_ = 0;  // of in_: there is no line's end before, but in what is taken
  std::size_t sent_ = 0;      // of out_
  bool ended_ = false, reads_ = true;
  os::Poll readable_, writable_;
};

}  // namespace berth::agent
