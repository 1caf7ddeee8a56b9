// `berth cluster probe` and `clean` of the hosts of an ssh cluster.
#pragma once

#include <string>
#include <vector>

#include "berth/remote/cleaning.h"
#include "berth/remote/clusters.h"

namespace berth::cli {

/// A host with its answer, or the reason why it gave none.
struct HostProbed {
  std::string cluster, host;
  Result<agent::MachineOffer> offer;
};

/// Asks all hosts of a cluster in parallel and waits up to 60 s for their answers.
Result<std::vector<HostProbed>> probe_hosts(os::Env& env, const remote::ClusterEntry& entry);
/// A table; "" for no hosts.
std::string to_text(const std::vector<HostProbed>& probed);
std::string to_json(const HostProbed& probed);

/// "2 NVIDIA H100"; "2 GPUs" if the model is "", as of GPUs that report none.
std::string gpus_text(std::int64_t count, std::string_view model);

/// Removes unused files from the hosts of a cluster, or only counts them.
Result<std::vector<remote::HostCleaned>> clean_hosts(os::Env& env,
                                                     const remote::ClusterEntry& entry,
                                                     const agent::CleanOptions& options);
std::string to_json(const remote::HostCleaned& of);

}  // namespace berth::cli
