// What a server answers, as a table: each row says which requests it takes, what they must be
// allowed, how the API's document describes it, and which function answers. The server dispatches
// from the same rows that the document is made of, so neither has a call that the other lacks.
//
// Pure: there are no sockets here; server.h carries requests and replies over HTTP.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/names.h"
#include "berth/base/result.h"

namespace berth::api {

/// What a request must be allowed, or is allowed. Each role may do what those before it may.
enum class Role : std::uint8_t { none, read, control };
inline constexpr auto kRoleNames =
    names<Role>({{Role::none, "none"}, {Role::read, "read"}, {Role::control, "control"}});

struct Request {
  std::string method;  ///< "GET", "POST", …
  std::string path;    ///< "/v1/runs/a%2Fb", as it was sent.
  std::string body;
  std::string query = {};  ///< What follows '?', as it was sent.
  Role role = Role::control;
  std::vector<std::string> parts = {};  ///< What {names} of the route's path stand for, decoded.
  /// Return true once the client has left or the server ends, and once the answer has taken too
  /// long. Called on the thread that answers; empty: false.
  std::function<bool()> is_abandoned = {}, is_late = {};
};
inline bool is_abandoned(const Request& request) {
  return request.is_abandoned && request.is_abandoned();
}

struct Reply {
  int status = 200;
  std::string body;  ///< JSON, one line, unless `type` is another.
  const char* type = "application/json";
  bool ends_line = true;  ///< A newline follows the body.
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::optional<Error> error = {};  ///< Why there is no answer; the body says it too.
  /// What follows the body, sent part by part as it comes, until it returns nullopt. After an error
  /// the connection breaks off, so that nobody takes what came for the whole. It is called on the
  /// thread that answers.
  std::function<Result<std::optional<std::string>>()> more = {};
};

/// What the API's document says of a call.
struct Call {
  std::string_view method, path;  ///< "/v1/runs/{run}/log": {run} stands for one part.
  Role role;
  std::string_view group, summary;
  std::string_view answer;      ///< A schema of the document, or a media type such as "text/csv".
  std::string_view body = "";   ///< The schema of what it is sent; "": nothing.
  std::string_view query = "";  ///< Names that its query may have, with blanks between them.
  int status = 200;             ///< The status of an answer that is not an error.
};

struct Route {
  Call call;
  std::function<Reply(const Request&)> answer;  ///< Called on any number of threads at once.
  bool is_free = false;                         ///< Nobody has to show the role.
};

/// What a request is for.
struct Match {
  const Route* route = nullptr;    ///< nullptr: no route takes this method at this path.
  std::vector<std::string> parts;  ///< Of the path, decoded.
  std::string allowed;             ///< The methods that the path takes; "": there is no such path.
};
/// HEAD asks for what GET would answer, but of nothing that changes something.
Match match(std::span<const Route> routes, std::string_view method, std::string_view path);

/// Answers by the route that takes the request: 404 where none has its path, 405 where none of
/// these takes its method. It does not look at roles.
Reply answer(std::span<const Route> routes, const Request& request);

/// The query's NAME=VALUE, decoded, in their order. usage: there is one that `names` lacks.
Result<std::vector<std::pair<std::string, std::string>>> read_query(std::string_view query,
                                                                    std::string_view names);

/// The HTTP status of an error: invalid, usage 400 · denied 403 · not_found 404 · exists, stale 409
/// · impossible 422 · busy 503 · full 507 · else 500.
int http_status(ErrorKind kind);
/// {"error": its message, "message": the same, "kind": "invalid"}. `status` 0: as http_status().
Reply failed(const Error& error, int status = 0);

}  // namespace berth::api
