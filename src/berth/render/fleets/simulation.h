// What the servers of a fleet attain in a simulation, as text and JSON.
#pragma once

#include <string>

#include "berth/engine/fleets/fleet_simulation.h"
#include "berth/render/table.h"

namespace berth::render {

std::string to_text(const engine::FleetSimulation& simulation, const View& view);
/// {"version": 1, "servers": {name: {…}}, "not_simulated": {name: reason}}. A figure is {"value",
/// "error"}: half of the 95 % confidence interval, or null; one of a latency has a "target", too,
/// in ms, where 0 is none, and a "verdict", and its "value" is null where nobody was served.
std::string to_json(const engine::FleetSimulation& simulation);

}  // namespace berth::render
