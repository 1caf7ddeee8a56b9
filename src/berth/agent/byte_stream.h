// A ByteStream is one end of a connection. It reads and writes what there is, in turns of its Env's
// loop, and never blocks; what is made of the bytes is its owner's business (LineStream,
// FrameStream).
//
// Ownership: owns its descriptor; refers to the Env. Threads: one. Failure: an error ends the
// connection, and so does the other side; what came before can still be taken.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "berth/os/env.h"
#include "berth/os/loop.h"

namespace berth::agent {

class ByteStream {
 public:
  /// `on_event` is called in a turn of the loop when bytes have come or gone, or when the
  /// connection has ended; an error says why it can be used no longer.
  ByteStream(os::Env& env, std::function<void(Status)> on_event);
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  /// What was sent before goes now.
  void open(os::Fd fd);
  void close();
  /// Closes it and forgets what had come and what was to go.
  void reset();
  bool is_open() const { return static_cast<bool>(fd_); }
  /// The other side has closed, or this one.
  bool ended() const { return ended_ || !fd_; }
  /// Whether it reads; at first it does.
  void set_reading(bool reads);

  void send(std::string_view bytes);
  std::size_t unsent() const { return out_.size() - sent_; }
  /// Sends what can be sent at once. A connection on which nothing can be sent any more has ended.
  Status write();
  /// What has come and was not taken; good until the next turn of the loop or write().
  std::string_view unread() const { return std::string_view(in_).substr(taken_); }
  void take(std::size_t bytes) { taken_ += bytes; }

 private:
  Status read();
  void arm();
  void tell(Status status);

  os::Env* env_;
  std::function<void(Status)> on_event_;
  os::Fd fd_;
  std::string in_, out_;
  std::size_t taken_ = 0;  // of in_
  std::size_t sent_ = 0;   // of out_
  bool ended_ = false, reads_ = true;
  os::Poll readable_, writable_;
};

}  // namespace berth::agent
