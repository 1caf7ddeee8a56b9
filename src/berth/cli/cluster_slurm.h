// `berth cluster probe` of a Slurm cluster: its partitions and the free amounts of each.
#pragma once

#include <string>
#include <vector>

#include "berth/remote/clusters.h"
#include "berth/remote/slurm_text.h"

namespace berth::cli {

struct SlurmProbed {
  std::string cluster;
  Result<std::vector<remote::SlurmPartition>> partitions;  ///< Or why Slurm did not answer.
  Status entry = {};  ///< invalid: the entry names partitions that do not exist; has file and line.
  /// The error of the answer, or of the entry.
  Status status() const;
};
/// Asks Slurm for the partitions of the entry. invalid: the entry has a syntax error.
Result<SlurmProbed> probe_slurm(os::Env& env, const remote::ClusterEntry& entry);
std::string to_text(const SlurmProbed& probed);
std::string to_json(const SlurmProbed& probed);

}  // namespace berth::cli
