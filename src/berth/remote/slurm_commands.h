// What a person may ask of a Slurm cluster outside of a run: what it has and what of that is free.
// Waits for the answer, half a minute at most.
#pragma once

#include <vector>

#include "berth/remote/slurm.h"

namespace berth::remote {

/// A command that takes longer is ended.
inline constexpr Duration kSlurmAnswersWithin = std::chrono::seconds(30);

/// Of those partitions that the cluster uses; of all where it names none. busy: Slurm does not
/// answer; io: what it says instead.
Result<std::vector<SlurmPartition>> slurm_partitions(os::Env& env, const SlurmOptions& options);

/// Whose jobs run or wait, in all partitions. As above.
Result<std::vector<SlurmHolder>> slurm_holders(os::Env& env);

/// What Slurm's commands are to know: nothing of a job that we run in ourselves, nor of settings
/// that would change what they print.
exec::Environment slurm_environment(os::Env& env);

}  // namespace berth::remote
