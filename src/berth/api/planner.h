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
// (docs/reference/planner-http.md), so that its clients work.
#pragma once

#include <shared_mutex>
#include <vector>

#include "berth/api/routes.h"
#include "berth/fleet/fleet.h"

namespace berth::api {

class Planner {
 public:
  explicit Planner(fleet::System system = {}, fleet::Execution means = {})
      : system_(std::move(system)), means_(std::move(means)) {}

  /// What it answers; they refer to it.
  std::vector<Route> routes();
  fleet::System system() const;

 private:
  friend struct Calls;
  mutable std::shared_mutex mutex_;
  fleet::System system_;
  fleet::Execution means_;
};

}  // namespace berth::api
