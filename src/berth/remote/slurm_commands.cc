#include "berth/remote/slurm_commands.h"

#include <algorithm>

namespace berth::remote {
namespace {

/// What the command prints.
Result<std::string> ask_slurm(os::Env& env, const std::vector<std::string>& words) {
  Command command(env, words, slurm_environment(env), kSlurmAnswersWithin, [] {});
  auto outcome = command.take();
  for (; !outcome && env.stop_signals() == 0; outcome = command.take())
    BERTH_TRY(env.loop().turn());
  if (!outcome) return fail(ErrorKind::busy, "stopped");
  if (outcome->error) return std::unexpected(*outcome->error);
  if (outcome->exit_code != 0)
    return fail(ErrorKind::io, "{}: {}", words.front(), gist_of(outcome->err));
  return outcome->out;
}

}  // namespace

exec::Environment slurm_environment(os::Env& env) {
  auto environment = env.environment();
  std::erase_if(environment, [](const auto& variable) {
    const std::string& name = variable.first;
    for (const std::string_view prefix :
         {"SLURM_", "SBATCH_", "SQUEUE_", "SCANCEL_", "SINFO_", "SALLOC_", "SRUN_"})
      if (name.starts_with(prefix) && !name.starts_with("SLURM_CONF")) return true;
    return name == "LC_ALL";
  });
  environment.emplace_back("LC_ALL", "C");
  return environment;
}

Result<std::vector<SlurmPartition>> slurm_partitions(os::Env& env, const SlurmOptions& options) {
  BERTH_ASSIGN(const auto text,
               ask_slurm(env, {"sinfo", "--noheader", "--Node", "--exact",
                               "--Format=" + std::string(kSlurmPartitionsFormat)}));
  BERTH_ASSIGN(auto partitions, read_slurm_partitions(text));
  const auto& named = options.partitions;
  std::erase_if(partitions, [&](const SlurmPartition& each) {
    return !named.empty() && std::ranges::find(named, each.name) == named.end();
  });
  return partitions;
}

Result<std::vector<SlurmHolder>> slurm_holders(os::Env& env) {
  BERTH_ASSIGN(const auto text, ask_slurm(env, {"squeue", "--noheader", "--states=PENDING,RUNNING",
                                                "--format=" + std::string(kSlurmHoldersFormat)}));
  return read_slurm_holders(text);
}

}  // namespace berth::remote
