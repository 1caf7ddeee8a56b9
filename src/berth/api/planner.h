// The fleet planner as a service: one System that requests read, change and plan with. Without
// sockets: a request is a method, a path and a body, a reply a status and a body (server.h carries
// them over HTTP).
//
// Threads: any number at once; readers do not wait for each other, and planning holds up nobody.
// Failure: a reply with the status of the error's kind and {"error": "…", "message": the same,
// "kind": "invalid"}; a request that fails has changed nothing, but for optimize and optimizeOne:
// what they planned for the others stands where a server goes without.
//
// The calls outside /v1 answer in the shapes of the planner that Berth's documents come from
// (docs/serve.md), so that its clients find what they know.
#pragma once

#include <shared_mutex>
#include <string>
#include <string_view>

#include "berth/fleet/fleet.h"

namespace berth::api {

struct Request {
  std::string method;  // "GET" or "POST"
  std::string path;    // "/getServer/chat", decoded part by part: a name may hold a slash as %2F
  std::string body;
};

struct Reply {
  int status = 200;
  std::string body;  // JSON, one line
};

/// invalid, usage 400 · denied 403 · not_found 404 · exists, stale 409 · impossible 422 · busy 503
/// · full 507 · else 500.
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
