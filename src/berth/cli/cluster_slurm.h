// What berth cluster does with a Slurm cluster: its partitions, and how much of each is free.
#pragma once

#include <string>
#include <vector>

#include "berth/remote/clusters.h"
#include "berth/remote/slurm_text.h"

namespace berth::cli {

struct SlurmProbed {
  std::string cluster;
  Result<std::vector<remote::SlurmPartition>> partitions;
};
/// Asks Slurm. invalid: the entry is wrong. Where Slurm does not answer, `partitions` has the
/// error.
Result<SlurmProbed> probe_slurm(os::Env& env, const remote::ClusterEntry& entry);
std::string to_text(const SlurmProbed& probed);
std::string to_json(const SlurmProbed& probed);

}  // namespace berth::cli
