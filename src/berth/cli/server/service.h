// The server of berth serve and of berth dashboard: the same routes for both. They differ in where
// they listen, what they begin with, and what they print.
#pragma once

#include <string>

#include "berth/api/calls/fleet_calls.h"
#include "berth/api/server.h"
#include "berth/cli/commands/dashboard.h"
#include "berth/cli/commands/serve.h"

namespace berth::cli {

struct ServiceOptions {
  api::ServerOptions listening;
  api::Fleets fleets;    ///< Its planner is the service's.
  fleet::System system;  ///< That the planner begins with.
  std::string percentiles = "simulated";
  std::string page;              ///< That the link opens on, "#/runs/digits-3"; "": that of all.
  bool is_planner_free = false;  ///< Without tokens, anybody on this machine may plan and scrape.
};

/// Serves until a stop signal. It prints the address and a link where `is_planner_free` has it,
/// else the link alone. Errors: as api::serve().
Result<int> run_service(os::Env& env, ServiceOptions options);

/// berth serve and berth dashboard, as berth-server carries them out.
Result<int> serve(os::Env& env, const ServeOptions& given);
Result<int> dashboard(os::Env& env, const DashboardOptions& given);

}  // namespace berth::cli
