// A FrameStream is one end of a connection that speaks in frames (frames.h).
//
// Ownership, threads and failure as ByteStream has them.
#pragma once

#include <optional>
#include <string_view>

#include "berth/agent/byte_stream.h"
#include "berth/agent/frames.h"

namespace berth::agent {

class FrameStream : public ByteStream {
 public:
  using ByteStream::ByteStream;

  void send_frame(FrameKind kind, std::string_view bytes) { send(encode(kind, bytes)); }
  /// The next whole frame. invalid: what came is none.
  Result<std::optional<Frame>> next();
};

}  // namespace berth::agent
