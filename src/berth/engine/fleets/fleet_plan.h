// A plan for a fleet of inference servers, with its manifests for Kubernetes and the runs that it
// started.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/engine/context.h"
#include "berth/engine/fleets/fleet.h"
#include "berth/engine/fleets/plan_start.h"
#include "berth/fleet/document/manifests.h"

namespace berth::engine {

struct ManifestRequest {
  std::string directory;
  fleet::ManifestOptions options;
};

struct FleetPlanRequest {
  bool lists_candidates = false;
  bool is_solved = true;  ///< false: only the candidates are computed.
  std::optional<ManifestRequest> manifests{};
  std::optional<std::vector<std::string>> start_on{};  ///< Clusters; empty: this machine.
  Context* context = nullptr;  ///< Of the started runs; nullptr: that of the environment.
};

struct FleetPlan {
  fleet::System system{};
  fleet::Candidates candidates{};
  fleet::Plan plan{};
  FleetPlanRequest request{};
  std::vector<fleet::Manifest> manifests{};
  std::vector<StartedRun> started{};
  bool is_wide = false;  ///< The text has all columns.
};

/// Plans the system, writes the manifests and starts the runs that are requested. Errors: as
/// write_manifests() and start_plan().
Result<FleetPlan> plan_fleet(os::Env& env, fleet::System system, FleetPlanRequest request,
                             const fleet::Execution& execution, const FleetNotes& notes);

/// Writes a file for each manifest into the directory, which is created if it does not exist, and
/// returns them. Files that berth plan wrote before are replaced. `notes` receives the servers
/// without replicas and the files of servers that the plan no longer has. Errors: as of files;
/// invalid: as fleet::manifests(), or a file that berth plan did not write; then nothing is
/// written.
Result<std::vector<fleet::Manifest>> write_manifests(os::Env& env, const fleet::System& system,
                                                     const fleet::Plan& plan,
                                                     const ManifestRequest& request,
                                                     const FleetNotes& notes);

/// Notes on options of the system that leave each server on one accelerator.
std::vector<std::string> notes_on_pairs(const fleet::System& system);

}  // namespace berth::engine
