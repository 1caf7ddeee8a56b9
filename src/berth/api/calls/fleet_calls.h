// Calls about fleets of inference servers. The body of a POST has the fleet or its path, and
// options of the corresponding command.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/api/calls/work.h"
#include "berth/api/planner.h"
#include "berth/api/routes.h"
#include "berth/base/json_writer.h"
#include "berth/os/env.h"

namespace berth::api {

/// The fleets that the page plans: those of files, and the planner's. Threads: any number at the
/// same time.
struct Fleets {
  std::vector<std::string> files;  ///< Of the command line, the only ones that requests may name.
  std::string profile;             ///< Their loads over a day; "": none.
  const Planner* planner = nullptr;
  std::string planner_name;  ///< The name of the planner's fleet.

  /// The names of all: the files, then the planner's fleet if it has a server.
  std::vector<std::string> names() const;
  /// Returns the current fleet with this number. Errors: usage: no fleet has the number; as
  /// engine::read_fleet().
  Result<fleet::System> system(os::Env& env, std::string_view number) const;
};

/// The list of the fleets, their plans, and their plans over a day. The routes refer to `fleets`.
std::vector<Route> page_fleet_routes(const Fleets& fleets);
/// Plan, start, size, simulate, fit and report.
std::vector<Route> fleet_routes(const Home& home = {});
/// Adds the JSON Schemas of their bodies to an object.
void add_fleet_request_schemas(JsonWriter& json);

}  // namespace berth::api
