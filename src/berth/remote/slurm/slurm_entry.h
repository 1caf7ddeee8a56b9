// A Slurm cluster as clusters.yaml has it:
//
//   hpc:
//     kind: slurm
//     partitions: [gpu, long]     # tried in this order; else Slurm's standard one
//     account: physics
//     time_limit: 12h             # of each job; else the partition's
//     drain: 10m                  # nothing new is started that long before its end (1m)
//     flags: [--qos=normal, --constraint=ib]   # of sbatch
//     jobs: 8                     # at a time (16)
//     gpus: {a100: {mem: 80G}}    # what Slurm does not tell of a GRES type
//     directory: /scratch/me/berth   # on the nodes; else the state directory of the person
#pragma once

#include "berth/remote/clusters.h"
#include "berth/remote/slurm/slurm.h"

namespace berth::remote {

/// invalid, with file, line and key.
Result<SlurmOptions> read_slurm(os::Env& env, const ClusterEntry& entry, const AgentFile& agent);

}  // namespace berth::remote
