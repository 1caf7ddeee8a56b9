// What runs have left on the hosts of a cluster, removed by `berth-agent clean` on each of them,
// all at once. Threads: one. Failure: each host's own.
#pragma once

#include <string>
#include <vector>

#include "berth/agent/clean.h"
#include "berth/remote/door.h"

namespace berth::remote {

struct HostCleaned {
  std::string host;
  Result<agent::Cleaned> cleaned;
};
/// Waits until all have answered, failed or the person wants to stop (interrupted).
Result<std::vector<HostCleaned>> clean_hosts(os::Env& env, const std::vector<Door>& doors,
                                             const AgentFile& agent,
                                             const agent::CleanOptions& options);

}  // namespace berth::remote
