// berth plan --start: the planned servers run, on this machine or on clusters.
#pragma once

#include <string>
#include <vector>

#include "berth/cli/options.h"
#include "berth/fleet/replica_group.h"
#include "berth/os/env.h"

namespace berth::cli {

struct StartChoices {
  bool wanted = false;
  std::vector<std::string> clusters;  // the main one first; none: this machine

  void add_to(Options& options);
  /// usage: where it runs is told, and nothing is to be started.
  Status check() const;
};

/// A run whose tasks are the replicas of one server on one accelerator.
struct StartedRun {
  fleet::ReplicaGroup group;
  std::string run;
  std::vector<int> ports;  // of each replica; none where the document has no port
};

/// Submits a run for each server that has replicas, and for each accelerator of a mix, and starts a
/// runner of each in the background. Before that it checks that each has a command, and on this
/// machine that all replicas have room side by side, now. Errors: invalid: the server, and what the
/// document lacks; not_found: no such program, or cluster; impossible: the machine is too small;
/// busy: others hold what is needed.
Result<std::vector<StartedRun>> start_plan(os::Env& env, const fleet::System& system,
                                           const fleet::Plan& plan, const StartChoices& given);

/// A line for each run.
std::string started_text(const std::vector<StartedRun>& started);
/// {"version":1,"plan":PLAN,"started":[{"server","accelerator","run","replicas","accelerators",
/// "ports":[…]}]}, with what fleet::plan_json() says as PLAN.
std::string started_json(const std::vector<StartedRun>& started, const std::string& plan);

}  // namespace berth::cli
