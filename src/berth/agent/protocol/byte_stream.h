// A ByteStream is one end of a connection. It reads and writes in turns of its Env's loop, and
// never blocks. LineStream and FrameStream divide its bytes into messages.
//
// Ownership: it owns its descriptor and refers to the Env. Threads: one. Failure: an error, or the
// other side, ends the connection; the bytes that came before can still be taken.
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

  /// Takes the descriptor over, and writes to it what was sent before.
  void open(os::Fd fd);
  void close();
  /// Closes the connection and forgets the bytes that had come and those that were to go.
  void reset();
  bool is_open() const { return static_cast<bool>(fd_); }
  /// Whether either side has closed the connection.
  bool ended() const { return ended_ || !fd_; }
  /// Says whether the stream reads; at first it does.
  void set_reading(bool reads);

  void send(std::string_view bytes);
  std::size_t unsent() const { return out_.size() - sent_; }
  /// Writes what can be written at once. A connection that takes no more bytes has ended.
  Status write();
  /// The bytes that have come and were not taken; valid until the next turn of the loop or write().
  std::string_view unread() const { return std::string_view(in_).substr(taken_); }
  void take(std::size_t bytes) { taken_ += bytes; }

 private:
  Status read();
  void arm();
  void report(Status status);

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
