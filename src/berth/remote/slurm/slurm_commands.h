// What a person may ask of a Slurm cluster outside of a run: what it has and what of that is free.
// Waits for the answer, half a minute at most.
#pragma once

#include <vector>

#include "berth/remote/slurm/slurm.h"

namespace berth::remote {

/// A command that takes longer is ended.
inline constexpr Duration kSlurmAnswersWithin = std::chrono::seconds(30);

/// The partitions of a cluster entry as Slurm has them.
struct SlurmPartitions {
  std::vector<SlurmPartition> used;  ///< Those that the entry names; all if it names none.
  /// Why some or all of the entry's partitions cannot be used: they do not exist, or it names none
  /// and Slurm has no default one. "" without such an error.
  std::string problem;
};
/// Asks Slurm for its partitions. busy: Slurm does not answer; io: the command failed, and the
/// error has its message.
Result<SlurmPartitions> slurm_partitions(os::Env& env, const SlurmOptions& options);

/// Whose jobs run or wait, in all partitions. As above.
Result<std::vector<SlurmHolder>> slurm_holders(os::Env& env);

/// The error of a Slurm command that failed. It names the program once, and says if the program is
/// not installed or Slurm's controller does not answer. `outcome.good()` is false.
Error slurm_error(std::string_view program, const CommandEnd& outcome);

/// What Slurm's commands are to know: nothing of a job that we run in ourselves, nor of settings
/// that would change what they print.
exec::Environment slurm_environment(os::Env& env);

}  // namespace berth::remote
