// All calls that a program can make without a server's own state.
#pragma once

#include <string>
#include <vector>

#include "berth/api/calls/work.h"

namespace berth::api {

/// Calls about runs, machines and clusters, and fleets.
std::vector<Route> all_calls(const Home& home = {});

/// An object of the JSON Schemas of their bodies, by name.
std::string request_schemas_json();

}  // namespace berth::api
