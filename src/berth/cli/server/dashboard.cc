#include "berth/cli/server/dashboard.h"

#include <algorithm>
#include <array>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/server/own_command.h"
#include "berth/cli/server/page_files.h"
#include "berth/os/env.h"

namespace berth::cli {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(500);
constexpr int kMostViewers = 40;
constexpr Duration kLookElsewhere = std::chrono::seconds(2);
constexpr Duration kStillThere = std::chrono::seconds(15);  // a line, so that a dead one is noticed
constexpr std::size_t kMostWords = 16, kLongestWord = 512;
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A call is a command: each * in `path` is a part of the request's, which takes the place of the
/// next * in `words`, or, of the next @, the fleet of that number; % is the day. A last ** is all
/// parts that are left, a word each. What of `options` the request's query has, NAME=VALUE, follows
/// as
/// --NAME=VALUE.
struct Route {
  std::string_view method, path, words;
  const char* type = "application/json";
  bool streams = false;
  std::string_view options = "";
};
constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr std::array kRoutes = {
    Route{"GET", "/v1/runs", "runs --json"},
    Route{"GET", "/v1/runs/*", "show * --json"},
    Route{"GET", "/v1/runs/*/summary", "show * --json --summary"},
    Route{"GET", "/v1/runs/*/curves", "show * --json --chart curves"},
    Route{"GET", "/v1/runs/*/graph", "show * --json --graph"},
    Route{"GET", "/v1/runs/*/trials.csv", "show * --csv", "text/csv; charset=utf-8", true,
          "changed-since"},
    Route{"GET", "/v1/runs/*/best", "best * --json"},
    Route{"GET", "/v1/runs/*/importance", "importance * --json", "application/json", false,
          "metric"},
    Route{"GET", "/v1/runs/*/log", "logs * --together", kPlain, true, "tail"},
    Route{"GET", "/v1/runs/*/trace", "trace *"},
    Route{"GET", "/v1/tasks/*/why", "why * --json"},
    Route{"GET", "/v1/tasks/*/log", "logs * --together", kPlain, true, "tail attempt"},
    Route{"GET", "/v1/compare/**", "compare --json **", "application/json", false,
          "metric direction"},
    Route{"GET", "/v1/machine", "machine --json"},
    Route{"GET", "/v1/top", "top --json"},
    Route{"GET", "/v1/topology", "topo --json"},
    Route{"GET", "/v1/clusters", "cluster list --json"},
    Route{"GET", "/v1/fleets/*/plan", "plan @ --json", "application/json", false,
          "set percentiles solver"},
    Route{"GET", "/v1/fleets/*/day", "plan @ --json --profile %", "application/json", false,
          "set percentiles startup min-up"},
    Route{"POST", "/v1/runs/*/stop", "stop *"},
    Route{"POST", "/v1/runs/*/resume", "resume * --detach --json"},
    Route{"POST", "/v1/runs/*/retry", "retry * --detach --json"},
};

api::Reply failed(int status, std::string_view message) {
  return {status, JsonWriter().object().add("error", message).end().take()};
}

/// "%2F" is a slash within a part.
std::string decoded(std::string_view part) {
  std::string text;
  const auto digit = [](char c) {
    const auto at = std::string_view("0123456789abcdef").find(static_cast<char>(c | 0x20));
    return c >= '0' && c <= '9'           ? c - '0'
           : at == std::string_view::npos ? -1
                                          : static_cast<int>(at);
  };
  for (std::size_t i = 0; i < part.size(); ++i) {
    const bool escaped =
        part[i] == '%' && i + 2 < part.size() && digit(part[i + 1]) >= 0 && digit(part[i + 2]) >= 0;
    text += escaped ? static_cast<char>(digit(part[i + 1]) * 16 + digit(part[i + 2])) : part[i];
    if (escaped) i += 2;
  }
  return text;
}

/// What the parts of the path stand for in the route; nullopt: it is of another route.
std::optional<std::vector<std::string>> matched(const Route& route, std::string_view path) {
  const auto wanted = split(route.path, '/'), found = split(path, '/');
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::string_view want = i < wanted.size() ? wanted[i] : wanted.back();
    if (want.starts_with('*'))
      parts.push_back(decoded(found[i]));
    else if (i >= wanted.size() || want != found[i])
      return std::nullopt;
    if (want == "*" && i >= wanted.size()) return std::nullopt;
  }
  if (found.size() < wanted.size()) return std::nullopt;
  return parts;
}

/// No part may be taken for an option.
bool is_word(const std::string& part) {
  return !part.empty() && part.size() <= kLongestWord && !part.starts_with('-') &&
         std::ranges::none_of(part, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

/// Errors: usage: the query has what is no option of the route, or no fleet has the number.
Result<std::vector<std::string>> words_of(const Route& route, std::vector<std::string> parts,
                                          std::string_view query, const FleetFiles& files) {
  const auto& fleets = files.fleets;
  std::vector<std::string> words;
  auto next = parts.begin();
  for (const auto word : berth::words(route.words)) {
    if (word == "@") {
      const auto at = parse_integer(*next++);
      if (!at || *at < 0 || *at >= std::ssize(fleets))
        return fail(ErrorKind::usage, "wanted the number of a fleet, less than {}", fleets.size());
      words.push_back(fleets[static_cast<std::size_t>(*at)]);
    } else if (word == "%") {
      if (files.profile.empty()) return fail(ErrorKind::usage, "no --profile was given");
      words.push_back(files.profile);
    } else if (word == "**") {
      while (next != parts.end()) words.push_back(*next++);
    } else {
      words.push_back(word == "*" ? *next++ : std::string(word));
    }
  }
  const auto options = berth::words(route.options);
  for (const auto each : split(query, '&')) {
    const std::size_t equals = each.find('=');
    const std::string_view name = each.substr(0, equals);
    if (each.empty()) continue;
    if (equals == each.npos || std::ranges::find(options, name) == options.end() ||
        each.size() > kLongestWord)
      return fail(ErrorKind::usage, "'{}': wanted NAME=VALUE of {}", clip(each),
                  route.options.empty() ? "nothing" : route.options);
    words.push_back(fmt::format("--{}={}", name, decoded(each.substr(equals + 1))));
  }
  return words;
}

}  // namespace

api::Reply Dashboard::answer(const api::Request& request) {
  // What answers HEAD is what answers GET, whose body the library leaves out.
  std::string_view method = request.method;
  if (method == "HEAD") method = "GET";
  if (method == "GET") {
    if (request.path == "/open") return open(request.query);
    if (request.path == "/v1/events") return events();
    if (request.path == "/v1/fleets") {
      JsonWriter json;
      json.object().add("version", 1).key("fleets").list(files_.fleets);
      return {200, json.add("profile", files_.profile).end().take()};
    }
    if (const auto* file = page_file(request.path)) {
      api::Reply reply{200, std::string(file->bytes), file->type, false};
      reply.headers = {{"Content-Encoding", "gzip"},
                       {"Cache-Control", "no-cache"},
                       {"Content-Security-Policy", kPolicy},
                       {"X-Content-Type-Options", "nosniff"},
                       {"Referrer-Policy", "no-referrer"}};
      return reply;
    }
  } else if (method == "POST" && request.path == "/v1/invite") {
    return {200, JsonWriter().object().add("path", "/open?" + sessions_.invite()).end().take()};
  } else if (look_only_) {
    return failed(403, "this dashboard only looks: it was started with --look-only");
  }
  for (const auto& route : kRoutes) {
    auto parts = method == route.method ? matched(route, request.path) : std::nullopt;
    if (!parts) continue;
    if (parts->size() > kMostWords || !std::ranges::all_of(*parts, is_word))
      return failed(400, fmt::format("{}: wanted names of runs and tasks", clip(request.path)));
    auto words = words_of(route, *std::move(parts), request.query, files_);
    if (!words) return failed(400, words.error().message);
    return answer_of({.program = berth_,
                      .words = *std::move(words),
                      .type = route.type,
                      .streams = route.streams});
  }
  return failed(404, fmt::format("no call '{} {}'", request.method, clip(request.path)));
}

api::Reply Dashboard::open(const std::string& secret) {
  const std::string cookie = sessions_.open(secret);
  if (cookie.empty())
    return failed(401, "this link was used already; berth dashboard prints a new one");
  api::Reply reply{303, "", "text/plain", false};
  reply.headers = {
      {"Set-Cookie", cookie + "; HttpOnly; SameSite=Strict; Path=/" + (tls_ ? "; Secure" : "")},
      {"Location", "/"},
      {"Cache-Control", "no-store"}};
  return reply;
}

api::Reply Dashboard::events() {
  // Each holds a connection of those that there are.
  const auto place = std::shared_ptr<void>(nullptr, [this](void*) { --viewers_; });
  if (++viewers_ > kMostViewers) return failed(503, "too many pages look already");
  struct Watching {
    std::shared_ptr<void> place;
    std::unique_ptr<os::Env> env = os::posix_env();
    std::optional<std::pair<Wall, std::int64_t>> seen{};
    Mono said{};
  };
  const auto watching = std::make_shared<Watching>(place);
  api::Reply reply{200, "retry: 1000\n\n", "text/event-stream", false};
  reply.headers = {{"Cache-Control", "no-store"}};
  reply.more = [watching, files = std::array{database_ + "-wal",
                                             database_}]() -> Result<std::optional<std::string>> {
    for (;;) {
      std::pair<Wall, std::int64_t> now{};
      for (const auto& file : files)
        if (const auto status = watching->env->status(file); status)
          now = std::max(now, {status->modified, status->size});
      const Mono at = watching->env->now();
      const bool elsewhere = now == std::pair<Wall, std::int64_t>{};  // a database of its own host
      if (watching->seen != now || (elsewhere && at - watching->said >= kLookElsewhere)) {
        watching->seen = now;
        watching->said = at;
        return std::optional<std::string>("data: changed\n\n");
      }
      if (at - watching->said >= kStillThere) {
        watching->said = at;
        return std::optional<std::string>(": still there\n\n");
      }
      if (watching->env->stop_signals() > 0 || !watching->env->wait({}, at + kLook))
        return std::optional<std::string>();
    }
  };
  return reply;
}

}  // namespace berth::cli
