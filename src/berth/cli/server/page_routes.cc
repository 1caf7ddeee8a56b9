#include "berth/cli/server/page_routes.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>

#include "berth/base/json_writer.h"
#include "berth/cli/server/page_files.h"
#include "berth/error.h"
#include "berth/os/env.h"

namespace berth::cli {
namespace {

using api::Reply;
using api::Request;
using api::Role;

constexpr Duration kLook = std::chrono::milliseconds(500);
constexpr int kMostViewers = 40;
constexpr Duration kLookElsewhere = std::chrono::seconds(2);
constexpr Duration kStillThere = std::chrono::seconds(15);  // a line, so that a dead one is noticed
constexpr std::string_view kPage = "page", kViewers = "viewers";
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

Reply page(const Request& request) {
  const PageFile& file = *page_file(request.path);
  Reply reply{200, std::string(file.bytes), file.type, false};
  reply.headers = {{"Content-Encoding", "gzip"},
                   {"Cache-Control", "no-cache"},
                   {"Content-Security-Policy", kPolicy},
                   {"X-Content-Type-Options", "nosniff"},
                   {"Referrer-Policy", "no-referrer"}};
  return reply;
}

std::pair<std::string, std::string> set_cookie(const std::string& cookie, bool tls) {
  return {"Set-Cookie", cookie + "; HttpOnly; SameSite=Strict; Path=/" + (tls ? "; Secure" : "")};
}

Reply open(api::Sessions& sessions, bool tls, const Request& request) {
  const auto query = api::read_query(request.query, "secret");
  const std::string cookie =
      query && query->size() == 1 ? sessions.open(query->front().second) : "";
  if (cookie.empty())
    return api::failed({ErrorKind::denied,
                        "this link was used already; berth dashboard prints a "
                        "new one"},
                       401);
  Reply reply{303, "", "text/plain", false};
  reply.headers = {set_cookie(cookie, tls), {"Location", "/"}, {"Cache-Control", "no-store"}};
  return reply;
}

Reply session(const Request& request) {
  Reply reply{200, JsonWriter()
                       .object()
                       .add("role", api::kRoleNames.name(request.role))
                       .add("version", version())
                       .end()
                       .take()};
  reply.headers = {{"Cache-Control", "no-store"}};
  return reply;
}

Reply enter(api::Sessions& sessions, bool tls, const Request& request) {
  Reply reply = session(request);
  reply.headers.push_back(set_cookie(sessions.enter(request.role), tls));
  return reply;
}

/// A link for another viewer, of the role that the query names, or of the asker's.
Reply invite(api::Sessions& sessions, const Request& request) {
  const auto query = api::read_query(request.query, "role");
  if (!query) return api::failed(query.error());
  Role role = request.role;
  for (const auto& [name, value] : *query) {
    const auto wanted = api::kRoleNames.value(value);
    if (!wanted || *wanted == Role::none)
      return api::failed({ErrorKind::usage, "role: expected read or control"});
    if (*wanted > request.role)
      return api::failed(
          {ErrorKind::denied, "an invitation cannot allow more than its creator may do"});
    role = *wanted;
  }
  return {200,
          JsonWriter().object().add("path", "/open?secret=" + sessions.invite(role)).end().take()};
}

/// Tells of each change of the store, until the server stops or nobody listens.
class Changes {
 public:
  Changes(std::shared_ptr<void> place, const std::string& database)
      : place_(std::move(place)), files_{database + "-wal", database} {}

  Result<std::optional<std::string>> next() {
    for (;;) {
      std::pair<Wall, std::int64_t> now{};
      for (const auto& file : files_)
        if (const auto status = env_->status(file); status)
          now = std::max(now, {status->modified, status->size});
      const Mono at = env_->now();
      const bool elsewhere = now == std::pair<Wall, std::int64_t>{};  // a database of its own host
      if (seen_ != now || (elsewhere && at - said_ >= kLookElsewhere)) {
        seen_ = now;
        said_ = at;
        return std::optional<std::string>("data: changed\n\n");
      }
      if (at - said_ >= kStillThere) {
        said_ = at;
        return std::optional<std::string>(": still connected\n\n");
      }
      if (env_->stop_signals() > 0 || !env_->wait({}, at + kLook))
        return std::optional<std::string>();
    }
  }

 private:
  std::shared_ptr<void> place_;
  std::array<std::string, 2> files_;
  std::unique_ptr<os::Env> env_ = os::posix_env();
  std::optional<std::pair<Wall, std::int64_t>> seen_{};
  Mono said_{};
};

Reply events(const std::shared_ptr<std::atomic<int>>& viewers, const std::string& database) {
  // Each holds a connection of those that there are.
  const auto place = std::shared_ptr<void>(nullptr, [viewers](void*) { --*viewers; });
  if (++*viewers > kMostViewers)
    return api::failed({ErrorKind::busy, "too many pages are connected already"});
  Reply reply{200, "retry: 1000\n\n", "text/event-stream", false};
  reply.headers = {{"Cache-Control", "no-store"}};
  reply.more = [changes = std::make_shared<Changes>(place, database)] { return changes->next(); };
  return reply;
}

}  // namespace

std::vector<api::Route> page_routes(api::Sessions& sessions, const PageOptions& options) {
  const bool tls = options.tls;
  const auto viewers = std::make_shared<std::atomic<int>>(0);
  return {
      {{"GET", "/", Role::none, kPage, "the page", "text/html; charset=utf-8"}, page},
      {{"GET", "/page.js", Role::none, kPage, "its script", "text/javascript; charset=utf-8"},
       page},
      {{"GET", "/page.css", Role::none, kPage, "its style", "text/css; charset=utf-8"}, page},
      {{"GET", "/open", Role::none, kViewers, "log in with a link, which is valid once",
        "text/plain", "", "secret", 303},
       [&sessions, tls](const Request& request) { return open(sessions, tls, request); }},
      {{"GET", "/v1/session", Role::read, kViewers, "the caller's role", "Session"}, session},
      {{"POST", "/v1/session", Role::read, kViewers, "a cookie in place of the token", "Session"},
       [&sessions, tls](const Request& request) { return enter(sessions, tls, request); }},
      {{"POST", "/v1/invite", Role::read, kViewers, "a link for another viewer", "Invitation", "",
        "role"},
       [&sessions](const Request& request) { return invite(sessions, request); }},
      {{"GET", "/v1/events", Role::read, "runs", "an event for each change of the store",
        "text/event-stream"},
       [viewers, database = options.database](const Request&) {
         return events(viewers, database);
       }},
  };
}

}  // namespace berth::cli
