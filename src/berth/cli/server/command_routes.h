// What is answered by Berth's own commands: runs, tasks, this machine, clusters, plans of fleets.
#pragma once

#include <string>
#include <vector>

#include "berth/api/routes.h"
#include "berth/cli/server/fleets.h"

namespace berth::cli {

/// `berth`: the path of the program. The routes refer to `fleets`.
std::vector<api::Route> command_routes(const std::string& berth, const Fleets& fleets);

}  // namespace berth::cli
