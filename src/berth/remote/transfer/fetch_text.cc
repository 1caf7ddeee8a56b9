#include "berth/remote/transfer/fetch_text.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/url.h"

namespace berth::remote {
namespace {

constexpr Duration kLookForStop = std::chrono::milliseconds(200);

}  // namespace

Result<FetchedText> fetch_text(os::Env& env, HttpSession& session, HttpRequest request,
                               const TextLimits& limits) {
  std::string body;
  const std::string url = request.url;
  request.take = [&](const HttpReply&, std::string_view bytes) {
    body += bytes;
    return body.size() <= limits.most_bytes;
  };
  session.begin(std::move(request));
  const auto failed = [&](ErrorKind kind, std::string_view why) {
    return fail(kind, "{}: {}", shown(url), why);
  };
  const Mono until = env.now() + limits.within;
  for (;;) {
    if (auto reply = session.step()) {
      if (body.size() > limits.most_bytes)
        return failed(ErrorKind::io,
                      fmt::format("it answers more than {}",
                                  format_bytes(static_cast<std::int64_t>(limits.most_bytes))));
      if (!reply->error.empty()) return failed(ErrorKind::io, clip(reply->error, 300));
      return FetchedText{reply->status,
                         reply->status / 100 == 2 ? std::move(body) : std::move(reply->body)};
    }
    if (env.stop_signals() > 0) return failed(ErrorKind::interrupted, "stopped");
    if (env.now() >= until)
      return failed(ErrorKind::io,
                    fmt::format("no whole answer within {}", format_duration(limits.within)));
    const HttpWaits waits = session.waits();
    std::vector<os::Watch> watches;
    for (const auto& [fd, readable] : waits.sockets) watches.push_back({fd, readable});
    BERTH_TRY(
        env.wait(watches, env.now() + std::min(waits.most.value_or(kLookForStop), kLookForStop)));
  }
}

}  // namespace berth::remote
