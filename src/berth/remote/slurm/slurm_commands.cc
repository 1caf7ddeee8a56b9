#include "berth/remote/slurm/slurm_commands.h"

#include <algorithm>

#include "berth/base/text.h"

namespace berth::remote {
namespace {

/// What the command prints.
Result<std::string> ask_slurm(os::Env& env, const std::vector<std::string>& words) {
  Command command(env, words, slurm_environment(env), kSlurmAnswersWithin, [] {});
  auto outcome = command.take();
  for (; !outcome && env.stop_signals() == 0; outcome = command.take())
    BERTH_TRY(env.loop().turn());
  if (!outcome) return fail(ErrorKind::busy, "stopped");
  if (!outcome->good()) return std::unexpected(slurm_error(words.front(), *outcome));
  return outcome->out;
}

}  // namespace

Error slurm_error(std::string_view program, const CommandEnd& outcome) {
  constexpr std::string_view kSilent = "Slurm does not answer ({}); check it: scontrol ping";
  if (outcome.error) {
    const Error& error = *outcome.error;  // its message begins with the program
    if (error.kind == ErrorKind::busy) return {error.kind, fmt::format(kSilent, error.message)};
    if (error.kind != ErrorKind::not_found) return error;
    return {error.kind, fmt::format("{} was not found; install Slurm's commands on this machine, "
                                    "or add their directory to PATH",
                                    program)};
  }
  const std::string gist =
      fmt::format("{}: {}", program,
                  trim(outcome.err).empty() ? fmt::format("exit code {}", outcome.exit_code)
                                            : gist_of(outcome.err));
  if (trouble_of(outcome.err) != SlurmTrouble::unreachable) return {ErrorKind::io, gist};
  return {ErrorKind::io, fmt::format(kSilent, gist)};
}

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

Result<SlurmPartitions> slurm_partitions(os::Env& env, const SlurmOptions& options) {
  BERTH_ASSIGN(const auto text,
               ask_slurm(env, {"sinfo", "--noheader", "--Node", "--exact",
                               "--Format=" + std::string(kSlurmPartitionsFormat)}));
  SlurmPartitions answer;
  BERTH_ASSIGN(answer.used, read_slurm_partitions(text));
  std::ranges::sort(answer.used, {}, &SlurmPartition::name);  // sinfo's own order varies
  std::vector<std::string> existing;
  for (const auto& each : answer.used) existing.push_back(each.name);
  const auto& named = options.partitions;
  if (!named.empty())
    answer.problem = missing_partitions(named, existing);
  else if (std::ranges::none_of(answer.used, &SlurmPartition::standard))
    answer.problem = no_default_partition(existing);
  std::erase_if(answer.used, [&](const SlurmPartition& each) {
    return !named.empty() && std::ranges::find(named, each.name) == named.end();
  });
  return answer;
}

Result<std::vector<SlurmHolder>> slurm_holders(os::Env& env) {
  BERTH_ASSIGN(const auto text, ask_slurm(env, {"squeue", "--noheader", "--states=PENDING,RUNNING",
                                                "--format=" + std::string(kSlurmHoldersFormat)}));
  return read_slurm_holders(text);
}

}  // namespace berth::remote
