// What is asked of Slurm for a wish: a partition and the size of one job there. Matched before
// anything is asked, so that what can never start is told at once, with what was wanted and what
// there is. Pure.
#pragma once

#include <map>
#include <span>
#include <string>

#include "berth/cluster/cluster.h"
#include "berth/remote/slurm/slurm_text.h"

namespace berth::remote {

/// What Slurm does not tell of a type of GPU.
struct SlurmGpu {
  std::int64_t memory = 0;  // bytes; 0: nobody told, and then nobody may ask
  int slots = 0;            // 0: the card's usual ones
};
using SlurmGpuTypes = std::map<std::string, SlurmGpu>;

struct SlurmAsk {
  std::string partition;
  machine::Block block;    // what the job is to have; its devices have no UUID yet
  std::string gpu_type;    // "": any
  std::int64_t width = 1;  // of the wish's least, how many it holds
  bool operator==(const SlurmAsk&) const = default;
};

/// One node, as something that could be leased whole.
machine::Block block_of(const SlurmNodes& nodes, const SlurmGpus* gpus, const SlurmGpuTypes& types);

/// Partitions that get no job for a while, by name, each with the reason.
using PausedPartitions = std::map<std::string, std::string, std::less<>>;

/// Returns the first of `partitions` (none: Slurm's default one) that has nodes for the request and
/// is not paused. Errors name each partition once. impossible: no partition can ever have such
/// nodes; busy: the nodes of all that can are down; io: all that can are paused.
Result<SlurmAsk> match(const cluster::Wish& wish, std::span<const SlurmNodes> nodes,
                       std::span<const std::string> partitions, std::optional<Duration> time_limit,
                       const SlurmGpuTypes& types, const PausedPartitions& paused);

}  // namespace berth::remote
