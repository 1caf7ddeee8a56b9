// What the planner, which is pure, is handed: documents from files, and threads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"
#include "berth/fleet/fleet.h"
#include "berth/os/env.h"

namespace berth::library {

/// "results/a.json" for the name `a.json` in the directory `results` or `results/`.
std::string path_in(std::string_view directory, std::string_view name);
/// Reads the file, or every .json file of the directory. not_found: the directory has none.
Result<std::vector<fleet::Document>> fleet_documents(os::Env& env, const std::string& path);

/// How a fleet is planned: on all cores, 16 at most, and with rates within targets for percentiles
/// decided by `percentiles`: "simulated", or "closed-form".
fleet::Execution planning_execution(std::string_view percentiles);

}  // namespace berth::library
