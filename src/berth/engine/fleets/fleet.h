// What the planner of fleets, which is pure, takes from outside: documents and traces from files,
// and the threads that it runs on.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"
#include "berth/fleet/fleet.h"
#include "berth/fleet/simulate/traffic.h"
#include "berth/os/env.h"

namespace berth::engine {

/// Receives notes of one kind on a fleet.
using FleetNotes = std::function<void(const std::vector<std::string>& notes)>;

/// "results/a.json" for the name `a.json` in the directory `results` or `results/`.
std::string path_in(std::string_view directory, std::string_view name);
/// Reads the file, or every .json file of the directory. not_found: the directory has none.
Result<std::vector<fleet::Document>> fleet_documents(os::Env& env, const std::string& path);
/// Reads the documents of the path as a fleet; `notes` receives what they leave open. Errors: as of
/// fleet_documents() and fleet::read_documents().
Result<fleet::System> read_fleet(os::Env& env, const std::string& path, const FleetNotes& notes);
/// Notes on names that refer to nothing, and on missing limits of replicas.
void note_missing(const fleet::System& system, const FleetNotes& notes);
/// Notes that the reference model ignores targets for percentiles, if the system has any.
void note_averages(const fleet::System& system, const FleetNotes& notes);
/// Reads a trace of requests. Errors: as of files; invalid: compressed, or as fleet::read_trace().
Result<std::vector<fleet::Request>> fleet_trace(os::Env& env, const std::string& path);

/// How a fleet is planned: on all cores, 16 at most, and with rates within targets for percentiles
/// decided by `percentiles`: "simulated", or "closed-form".
fleet::Execution planning_execution(std::string_view percentiles);
/// Stops searches at the best plan found after this time too.
void limit_time(fleet::Execution& execution, os::Env& env, Duration limit);

}  // namespace berth::engine
