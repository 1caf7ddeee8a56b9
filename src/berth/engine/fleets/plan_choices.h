// What can be asked of a fleet's planner: one plan, a sweep of one value, or a day. The choices are
// text, as options of `berth plan` and as values of a request have them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "berth/engine/fleets/fleet_day.h"
#include "berth/engine/fleets/fleet_plan.h"
#include "berth/fleet/solver/sweep.h"

namespace berth::engine {

struct DayChoices {
  std::optional<std::string> profile, trace, server;
  std::optional<std::string> window, transition_cost, startup, min_up, hysteresis;
  bool replay = false;

  bool is_wanted() const { return profile || trace; }
};

struct ManifestChoices {
  std::optional<std::string> directory;
  std::string scaler, kubernetes_namespace, prometheus;
};

/// "" and false: what the document says.
struct PlanChoices {
  std::vector<std::string> sets = {};  // "capacity.H100=16"
  std::string model = {}, solver = {}, saturation = {}, power_budget = {};
  bool delayed_best_effort = false, heterogeneous = false, disaggregated = false;
  std::string time_limit = {}, percentiles = "simulated";
  bool lists_candidates = false;  // of each server, next to the plan
  bool has_no_plan = false;       // with lists_candidates: only the candidates are wanted
  bool is_plan_checked = false;   // the plan is made for leaves_unserved() all the same
  std::string sweep = {};         // "capacity.H100=8..64..8"
  DayChoices day = {};
  ManifestChoices manifests = {};
  bool starts = false;                     // the planned servers
  std::vector<std::string> clusters = {};  // of the started servers; empty: this machine
  Context* context = nullptr;              // of the started runs; nullptr: of the environment
};

using Planned = std::variant<FleetPlan, fleet::Sweep, PlannedDay>;

/// Checks the choices without a fleet. Errors: usage, with the option.
Status check_choices(const PlanChoices& choices);

/// Plans the system as chosen. The search ends early once `is_abandoned` returns true. Errors: as
/// check_choices(), plan_fleet(), fleet::sweep() and plan_day().
Result<Planned> plan(os::Env& env, fleet::System system, const PlanChoices& choices,
                     const FleetNotes& notes, const std::function<bool()>& is_abandoned = {});

/// Whether a server gets nothing, at some time or for some value of a sweep.
bool leaves_unserved(const Planned& planned);

}  // namespace berth::engine
