// The fleets that the page plans, those of files and the planner's, and their routes: the list, the
// plan of a fleet, and its plan over the day.
//
// Threads: any number at the same time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/api/planner.h"
#include "berth/api/routes.h"
#include "berth/os/env.h"

namespace berth::cli {

struct Fleets {
  std::vector<std::string> files;  ///< Of the command line, the only ones that requests may name.
  std::string profile;             ///< Their loads over a day; "": none.
  const api::Planner* planner = nullptr;
  std::string planner_name;  ///< The name of the planner's fleet.

  /// The names of all: the files, then the planner's fleet if it has a server.
  std::vector<std::string> names() const;
  /// The fleet of that number, as it is now. Errors: usage, if there is none; as
  /// engine::read_fleet().
  Result<fleet::System> system(os::Env& env, std::string_view number) const;
};

/// The routes refer to `fleets`.
std::vector<api::Route> fleet_routes(const Fleets& fleets);

}  // namespace berth::cli
