// The routes that Berth's own commands still answer, as separate processes: the output and the
// tables of runs, this machine, clusters, and plans of fleets. run_routes.h has the others.
#pragma once

#include <string>
#include <vector>

#include "berth/api/routes.h"
#include "berth/cli/server/fleets.h"

namespace berth::cli {

/// `berth`: the path of the program. The routes refer to `fleets`.
std::vector<api::Route> command_routes(const std::string& berth, const Fleets& fleets);

}  // namespace berth::cli
