#include "berth/api/routes.h"

#include <algorithm>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/url.h"

namespace berth::api {
namespace {

constexpr std::size_t kLongestValue = 512;

/// A path without the slashes at its ends.
std::vector<std::string_view> parts_of(std::string_view path) {
  if (path.starts_with('/')) path.remove_prefix(1);
  if (path.ends_with('/')) path.remove_suffix(1);
  return split(path, '/');
}

/// What the parts of a path stand for in a route's; nullopt: it is another.
std::optional<std::vector<std::string>> parts_in(std::string_view pattern,
                                                 const std::vector<std::string_view>& path) {
  const auto own = parts_of(pattern);
  if (own.size() != path.size()) return std::nullopt;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < own.size(); ++i)
    if (own[i].starts_with('{'))
      parts.push_back(percent_decoded(path[i]));
    else if (own[i] != path[i])
      return std::nullopt;
  return parts;
}

}  // namespace

Match match(std::span<const Route> routes, std::string_view method, std::string_view path) {
  Match found;
  if (!path.starts_with('/')) return found;
  const auto given = parts_of(path);
  for (const Route& route : routes) {
    auto parts = parts_in(route.call.path, given);
    if (!parts) continue;
    const bool is_head =
        method == "HEAD" && route.call.method == "GET" && route.call.role != Role::control;
    if (route.call.method == method || is_head)
      return {.route = &route, .parts = *std::move(parts), .allowed = {}};
    found.allowed += (found.allowed.empty() ? "" : ", ") + std::string(route.call.method);
  }
  return found;
}

Reply answer(std::span<const Route> routes, const Request& request) {
  Match found = match(routes, request.method, request.path);
  if (found.route != nullptr) {
    Request with_parts = request;
    with_parts.parts = std::move(found.parts);
    return found.route->answer(with_parts);
  }
  if (found.allowed.empty())
    return failed({ErrorKind::not_found,
                   fmt::format("no call '{} {}'", clip(request.method), clip(request.path))});
  Reply reply = failed({ErrorKind::usage, fmt::format("{}: expected {}, got {}", clip(request.path),
                                                      found.allowed, clip(request.method))},
                       405);
  reply.headers.emplace_back("Allow", found.allowed);
  return reply;
}

Result<std::vector<std::pair<std::string, std::string>>> read_query(std::string_view query,
                                                                    std::string_view names) {
  const auto known = words(names);
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto each : split(query, '&')) {
    if (each.empty()) continue;
    const std::size_t equals = each.find('=');
    const std::string_view name = each.substr(0, equals);
    if (equals == each.npos || std::ranges::find(known, name) == known.end() ||
        each.size() > kLongestValue)
      return fail(ErrorKind::usage, "'{}': expected NAME=VALUE of {}", clip(each),
                  names.empty() ? "nothing" : names);
    values.emplace_back(name, percent_decoded(each.substr(equals + 1)));
  }
  return values;
}

int http_status(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
    case ErrorKind::invalid: return 400;
    case ErrorKind::denied: return 403;
    case ErrorKind::not_found: return 404;
    case ErrorKind::exists:
    case ErrorKind::stale: return 409;
    case ErrorKind::impossible: return 422;
    case ErrorKind::busy: return 503;
    case ErrorKind::full: return 507;
    default: return 500;
  }
}

Reply failed(const Error& error, int status) {
  const std::string message = without_secrets(error.message);
  // `message` is where the reference's clients look.
  JsonWriter json;
  json.object().add("error", message).add("message", message).add("kind", name(error.kind));
  return {.status = status != 0 ? status : http_status(error.kind),
          .body = json.end().take(),
          .error = Error{error.kind, message}};
}

}  // namespace berth::api
