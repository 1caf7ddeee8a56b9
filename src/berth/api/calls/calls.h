// All calls that a program can make without a server's own state.
#pragma once

#include <vector>

#include "berth/api/calls/work.h"

namespace berth::api {

/// Calls about runs, machines and clusters, and fleets.
std::vector<Route> all_calls(const Home& home = {});

}  // namespace berth::api
