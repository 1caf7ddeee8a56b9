// A LineStream is one end of a connection whose messages are lines.
//
// Ownership, threads and failure are those of ByteStream. A line longer than kMessageMost is
// invalid.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "berth/agent/protocol/byte_stream.h"

namespace berth::agent {

inline constexpr std::size_t kMessageMost = 16 << 20;  // bytes of a line

class LineStream : public ByteStream {
 public:
  LineStream(os::Env& env, std::function<void(Status)> on_event);

  /// Sends a line, which is given without its end.
  void send_line(std::string_view line);
  /// The next whole line without its end, valid until the next turn of the loop or write(); nullopt
  /// where none has come whole.
  std::optional<std::string_view> next();
  void reset() {
    searched_ = 0;
    ByteStream::reset();
  }

 private:
  std::size_t searched_ = 0;  // of what is unread: there is no line's end before
};

}  // namespace berth::agent
