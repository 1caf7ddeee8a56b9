// The routes of the fleets that the page plans: their list, the plan of a fleet, and its plan over
// the day.
#pragma once

#include <vector>

#include "berth/api/routes.h"
#include "berth/cli/server/fleets.h"

namespace berth::cli {

/// The routes refer to `fleets`.
std::vector<api::Route> fleet_routes(const Fleets& fleets);

}  // namespace berth::cli
