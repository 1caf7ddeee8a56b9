// Plans and sweeps of fleets, as text and JSON.
#pragma once

#include <string>

#include "berth/engine/fleets/fleet_plan.h"
#include "berth/fleet/solver/sweep.h"
#include "berth/render/table.h"

namespace berth::render {

/// What each server gets, the cost and its proof, the manifests and the runs; with
/// `lists_candidates` the table of candidates alone.
std::string to_text(const engine::FleetPlan& made, const View& view);
/// fleet::plan_json() with "servers": what each server should attain, and its current allocation:
/// {SERVER: {"class", "model", "utilisation", "slo": {"itl", "ttft", "tps", "itlPercentiles": {…},
/// "ttftPercentiles": {…}}, "current": {"accelerator", "numReplicas", "cost"}, "change": text}}.
/// The objectives are in milliseconds and tokens a second; those without a target are left out.
/// With started runs it is
/// {"version":1,"plan":PLAN,"started":[{"server","accelerator","role","run",
/// "replicas","accelerators","ports":[…]}]}.
std::string to_json(const engine::FleetPlan& made);

std::string to_text(const fleet::Sweep& sweep, const View& view);
/// {"version":1,"path","sweep":[{"at","cost","value","gap","unserved_by_priority"}]}.
std::string to_json(const fleet::Sweep& sweep);

}  // namespace berth::render
