// A FrameStream is one end of a connection whose messages are frames (frames.h).
//
// Ownership, threads and failure are those of ByteStream.
#pragma once

#include <optional>
#include <string_view>

#include "berth/agent/protocol/byte_stream.h"
#include "berth/agent/protocol/frames.h"

namespace berth::agent {

class FrameStream : public ByteStream {
 public:
  using ByteStream::ByteStream;

  void send_frame(FrameKind kind, std::string_view bytes) { send(encode(kind, bytes)); }
  /// The next whole frame; nullopt where none has come whole. Failure: invalid, where what came is
  /// no frame.
  Result<std::optional<Frame>> next();
};

}  // namespace berth::agent
