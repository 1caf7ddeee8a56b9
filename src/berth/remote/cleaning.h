// clean_hosts() removes what runs have left on the hosts of a cluster, by `berth-agent clean` on
// all of them at once. Threads: one. Failure: each host has its own.
#pragma once

#include <string>
#include <vector>

#include "berth/agent/clean.h"
#include "berth/remote/transport.h"

namespace berth::remote {

struct HostCleaned {
  std::string host;
  Result<agent::Cleaned> cleaned;
};
/// Waits until all hosts have answered or failed. Failure: interrupted, where the person wants to
/// stop.
Result<std::vector<HostCleaned>> clean_hosts(os::Env& env, const std::vector<Transport>& transports,
                                             const AgentFile& agent,
                                             const agent::CleanOptions& options);

}  // namespace berth::remote
