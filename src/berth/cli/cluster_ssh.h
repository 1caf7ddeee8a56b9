// What berth cluster does with the hosts of an ssh cluster.
#pragma once

#include <string>
#include <vector>

#include "berth/remote/cleaning.h"
#include "berth/remote/clusters.h"

namespace berth::cli {

/// A host, and what it answered or why it did not.
struct HostProbed {
  std::string cluster, host;
  Result<agent::MachineOffer> offer;
};

/// Asks all hosts of a cluster at once and waits for their answers, 60 s at most.
Result<std::vector<HostProbed>> probe_hosts(os::Env& env, const remote::ClusterEntry& entry);
/// A table; "" of no hosts.
std::string to_text(const std::vector<HostProbed>& probed);
std::string to_json(const HostProbed& probed);

/// Removes from the hosts of a cluster what nobody uses, or only counts it.
Result<std::vector<remote::HostCleaned>> clean_hosts(os::Env& env,
                                                     const remote::ClusterEntry& entry,
                                                     const agent::CleanOptions& options);
std::string to_json(const remote::HostCleaned& of);

}  // namespace berth::cli
