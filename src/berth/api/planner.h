// The fleet planner as a service: one System that requests read, change and plan with. It has no
// sockets: a request is a method, a path and a body, and a reply is a status and a body; server.h
// carries them over HTTP.
//
// Any number of threads may call it at once. Readers do not wait for each other, and planning
// blocks nobody. A failure is a reply with the status of the error's kind and {"error": "…",
// "message": the same, "kind": "invalid"}. A request that fails has changed nothing, except
// optimize and optimizeOne: where one server gets no accelerators, the plan for the others stays.
//
// The calls outside /v1 answer in the shapes of the planner that Berth's documents come from
// (docs/serve.md), so that its clients work.
#pragma once

#include <functional>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/fleet/fleet.h"

namespace berth::api {

struct Request {
  std::string method;  // "GET" or "POST"
  std::string path;    // "/getServer/chat", decoded part by part: a name may hold a slash as %2F
  std::string body;
  std::string query = {};  // what follows '?', decoded no further
};

struct Reply {
  int status = 200;
  std::string body;  // JSON, one line, of that type
  const char* type = "application/json";
  bool ends_line = true;  // a newline follows the body
  std::vector<std::pair<std::string, std::string>> headers = {};
  // What follows the body, sent part by part as it comes, until it returns nullopt. After an error
  // the connection breaks off, so that nobody takes what came for the whole. It is called on the
  // thread that answers.
  std::function<Result<std::optional<std::string>>()> more = {};
};

/// The HTTP status of an error: invalid, usage 400 · denied 403 · not_found 404 · exists, stale 409
/// · impossible 422 · busy 503 · full 507 · else 500.
int http_status(ErrorKind kind);

class Planner {
 public:
  explicit Planner(fleet::System system = {}, fleet::Execution means = {})
      : system_(std::move(system)), means_(std::move(means)) {}

  Reply answer(const Request& request);
  fleet::System system() const;

 private:
  friend struct Calls;
  mutable std::shared_mutex mutex_;
  fleet::System system_;
  fleet::Execution means_;
};

}  // namespace berth::api
