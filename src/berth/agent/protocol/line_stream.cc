#include "berth/agent/protocol/line_stream.h"

#include <utility>

namespace berth::agent {

LineStream::LineStream(os::Env& env, std::function<void(Status)> on_event)
    : ByteStream(env, [this, on_event = std::move(on_event)](Status status) {
        const auto report = on_event;  // it may end this stream
        if (status && searched_ > kMessageMost)
          status = fail(ErrorKind::invalid, "a line of more than {} bytes", kMessageMost);
        report(std::move(status));
      }) {}

void LineStream::send_line(std::string_view line) {
  send(line);
  send("\n");
}

std::optional<std::string_view> LineStream::next() {
  const auto rest = unread();
  const auto end = rest.find('\n', searched_);
  searched_ = end == std::string_view::npos ? rest.size() : 0;
  if (end == std::string_view::npos) return std::nullopt;
  take(end + 1);
  return rest.substr(0, end);
}

}  // namespace berth::agent
