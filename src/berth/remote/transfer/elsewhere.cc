// Requests that are made until they are answered, and what their answers mean.
#include "berth/remote/transfer/elsewhere.h"

#include "berth/base/backoff.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::remote {
namespace {

constexpr int kMostTries = 6;
constexpr Backoff kAskAgain{std::chrono::milliseconds(500), std::chrono::seconds(20)};
constexpr Duration kMostRetryAfter = std::chrono::seconds(60);
/// So often a stop is looked for.
constexpr Duration kLookEvery = std::chrono::milliseconds(200);

/// 408 and 429 are "later" too.
bool may_pass(int status) {
  return status >= 500 || status == 408 || status == 429;
}

std::string_view name_of(int status) {
  switch (status) {
    case 400: return " Bad Request";
    case 401: return " Unauthorized";
    case 403: return " Forbidden";
    case 404: return " Not Found";
    case 410: return " Gone";
    case 429: return " Too Many Requests";
    case 500: return " Internal Server Error";
    case 502: return " Bad Gateway";
    case 503: return " Service Unavailable";
    case 504: return " Gateway Timeout";
    default: return "";
  }
}

/// What S3 says in XML.
std::string said_by(const Cloud& cloud, const HttpReply& reply) {
  if (cloud.read_xml == nullptr || !trim(reply.body).starts_with('<')) return {};
  const auto xml = cloud.read_xml(reply.body);
  if (!xml || xml->name != "Error") return {};
  return fmt::format(" ({}: {})", clip(xml->text_of("Code")), clip(xml->text_of("Message"), 200));
}

}  // namespace

std::string to_text(const TransferProgress& progress) {
  const std::int64_t done = progress.done, total = progress.total;
  if (done == 0) return {};
  if (total < done) return fmt::format(" ({})", format_bytes(done));
  return fmt::format(" ({} of {})", format_bytes(done), format_bytes(total));
}

Status Elsewhere::pause(Duration length) {
  for (const Mono until = env_.now() + length; env_.now() < until;) {
    if (env_.stop_signals() > 1) return fail(ErrorKind::interrupted, "stopped");
    BERTH_TRY(env_.wait({}, std::min(until, env_.now() + kLookEvery)));
  }
  return {};
}

Result<HttpReply> Elsewhere::exchange(HttpRequest request) {
  session_->begin(std::move(request));
  for (;;) {
    if (auto reply = session_->step()) return *std::move(reply);
    if (env_.stop_signals() > 1) return fail(ErrorKind::interrupted, "stopped");
    const HttpWaits waits = session_->waits();
    std::vector<os::Watch> watches;
    for (const auto& [fd, readable] : waits.sockets) watches.push_back({fd, readable});
    BERTH_TRY(
        env_.wait(watches, env_.now() + std::min(waits.most.value_or(kLookEvery), kLookEvery)));
  }
}

Result<HttpReply> Elsewhere::ask(const Url& url, const Make& make,
                                 const std::function<std::int64_t()>& done) {
  std::int64_t most = 0;
  for (int failures = 0;;) {
    BERTH_ASSIGN(HttpRequest request, make());
    BERTH_ASSIGN(HttpReply reply, exchange(std::move(request)));
    if (reply.error.empty() && !may_pass(reply.status)) return reply;
    if (const std::int64_t now = done ? done() : 0; now > most) {
      most = now;
      failures = 0;
    }
    if (++failures == kMostTries || reply.lasting) return std::unexpected(refusal(url, reply));
    Duration length = kAskAgain.pause(failures, env_.random());
    if (const auto seconds = parse_integer(reply.header("retry-after")); seconds && *seconds > 0)
      length =
          std::max(length, std::min<Duration>(std::chrono::seconds(*seconds), kMostRetryAfter));
    BERTH_TRY(pause(length));
  }
}

Error Elsewhere::refusal(const Url& url, const HttpReply& reply) const {
  const auto error = [&](ErrorKind kind, std::string_view what) {
    return Error{kind, fmt::format("{}: {}", shown(url.text), what)};
  };
  const bool s3 = url.scheme == "s3";
  const std::string_view who = reply.lasting ? "" : ", also when asked again";
  if (!reply.error.empty())
    return error(ErrorKind::io, fmt::format("{}{}", clip(reply.error, 200), who));
  std::string said = fmt::format("the server answers {}{}{}", reply.status, name_of(reply.status),
                                 said_by(cloud_, reply));
  const std::string advice = s3 ? s3_advice(*s3_, reply) : "";
  if (!advice.empty()) said += "; " + advice;
  if (reply.status == 404 || reply.status == 410)
    return error(ErrorKind::not_found,
                 said + (s3 ? "; are bucket and key right?" : "; is the address right?"));
  if (reply.status == 401 || reply.status == 403)
    return error(ErrorKind::denied,
                 said + (s3 ? "" : "; put its user name and password into ~/.netrc"));
  if (may_pass(reply.status))
    return error(ErrorKind::io, fmt::format("{}, also when asked {} times", said, kMostTries));
  return error(ErrorKind::invalid, said);
}

Status Elsewhere::find_s3_once(const Url& url) {
  if (url.scheme == "s3" && !s3_) {
    BERTH_ASSIGN(s3_, find_s3(env_));
  }
  return {};
}

HttpRequest Elsewhere::request(std::string method, const Url& url) const {
  if (url.scheme == "s3") return s3_request(*s3_, std::move(method), url);
  return {.method = std::move(method), .url = url.text};
}

}  // namespace berth::remote
