// The servers of a plan as runs, on this machine or on clusters.
#pragma once

#include <string>
#include <vector>

#include "berth/engine/runs/submission.h"
#include "berth/fleet/fleet.h"
#include "berth/fleet/model/replica_group.h"

namespace berth::engine {

/// A run whose tasks are the replicas of one server on one accelerator.
struct StartedRun {
  fleet::ReplicaGroup group;
  std::string run;
  std::vector<int> ports;  // of each replica; empty if the document has no port
};

/// Submits a run for each server that has replicas (one for each accelerator of a mix), and starts
/// a runner of each in the background. Before that it checks that each server has a command, and,
/// without `clusters`, that this machine has room for all replicas now. `note` receives what the
/// user should know. Errors: invalid, with the server and what the document lacks; not_found: no
/// such program or cluster; impossible: the machine is too small; busy: other runs use what is
/// needed.
Result<std::vector<StartedRun>> start_plan(run::Context& context, const fleet::System& system,
                                           const fleet::Plan& plan,
                                           const std::vector<std::string>& clusters,
                                           const Note& note);

}  // namespace berth::engine
