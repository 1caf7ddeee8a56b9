#include "berth/agent/protocol/frame_stream.h"

namespace berth::agent {

Result<std::optional<Frame>> FrameStream::next() {
  auto rest = unread();
  const std::size_t before = rest.size();
  BERTH_ASSIGN(auto frame, take_frame(rest));
  take(before - rest.size());
  return frame;
}

}  // namespace berth::agent
