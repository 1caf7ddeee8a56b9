// The words of the commands that Slurm is asked with, and the scripts that run in its jobs.
#include "berth/base/text.h"
#include "berth/machine/ledger/ledger_file.h"
#include "berth/remote/slurm/slurm.h"

namespace berth::remote {
namespace {

constexpr int kProbeFor_s = 60;  // an agent to come up

/// Runs in the job. It waits for the agent to be there: one that is not on a shared volume comes
/// with the first connection.
constexpr std::string_view kJobScript = R"(n=0
case $XDG_CACHE_HOME in /*) cache=$XDG_CACHE_HOME ;; *) cache=$HOME/.cache ;; esac
while [ $n -lt 240 ]; do
  for agent in "$1" "$cache/berth/agent-$2"; do
    [ -x "$agent" ] && { shift 2; mkdir -p "$1" && exec "$agent" start "$1/agent" --stay --with "$@"; }
  done
  n=$((n + 1)); sleep 0.25
done
exit 66)";

/// Here: two steps of the job, of which one only hears and the other only speaks. srun's
/// connections delay what is small while an answer may be on its way (Nagle's algorithm meets
/// delayed acknowledgements, 40 ms each time); on one that goes a single way that is rare.
/// Unbuffered, because else nothing goes on before its newline. What we may run in ourselves is not
/// meant.
constexpr std::string_view kDoor = R"(job=$1 place=$2; shift 2
for name in $(env | sed -n 's/^\(\(SLURM\|SRUN\)_[A-Z0-9_]*\)=.*/\1/p'); do
  [ "$name" = SLURM_CONF ] || unset "$name"
done
step() {
  exec srun --jobid="$job" --overlap --nodes=1 --ntasks=1 --chdir=/ --cpu-bind=none --unbuffered \
    --quiet /bin/sh -c "$@"
}
step 'n=0
until [ -p "$1" ]; do [ $n -lt 600 ] || exit 66; n=$((n + 1)); sleep 0.05; done
echo $$ >"$1.out"; exec <"$1"; read -r opened; rm -f "$1" "$1.out"; read -r until_it_ends' berth "$place/way.$$" </dev/null &
step 'mkfifo -m 600 "$1" && exec 3>"$1" && exec >"/proc/$(cat "$1.out")/fd/1" && echo >&3 && shift && exec "$@"' \
  berth "$place/way.$$" "$@" >/dev/null)";

/// Through srun: until the agent listens.
constexpr std::string_view kProbe = R"(n=0
until [ -S "$1/agent/socket" ]; do
  [ $n -lt "$2" ] || exit 66
  n=$((n + 1)); sleep 0.1
done)";

}  // namespace

std::string Slurm::place_name(cluster::AllocId id) {
  return fmt::format("{:016x}", static_cast<std::uint64_t>(id.value));
}

// The words of the commands. What others chose is among them only as a name that is none but a
// name.

std::vector<std::string> Slurm::submission(const Job& job) const {
  const Resources& wanted = job.ask.block.resources;
  const auto in_mib = [&](Known known) {
    return fmt::format("{}M", wanted.get(known) / kMiB + (wanted.get(known) % kMiB != 0 ? 1 : 0));
  };
  std::vector<std::string> words{"sbatch",
                                 "--parsable",
                                 "--no-requeue",
                                 "--nodes=1",
                                 "--ntasks=1",
                                 "--chdir=/",
                                 "--output=/dev/null",
                                 "--error=/dev/null",
                                 "--job-name=" + name_,
                                 "--comment=" + slurm_comment(job.alloc.labels),
                                 "--partition=" + job.ask.partition,
                                 fmt::format("--cpus-per-task={}", wanted.get(Known::cpu) / 1000)};
  if (wanted.get(Known::mem) > 0) words.push_back("--mem=" + in_mib(Known::mem));
  if (wanted.get(Known::disk) > 0) words.push_back("--tmp=" + in_mib(Known::disk));
  if (const auto gpus = wanted.get(Known::gpu); gpus > 0)
    words.push_back(fmt::format("--gres=gpu:{}{}{}", job.ask.gpu_type,
                                job.ask.gpu_type.empty() ? "" : ":", gpus));
  if (!job.avoid.empty()) words.push_back("--exclude=" + join(job.avoid, ","));
  if (!options_.account.empty()) words.push_back("--account=" + options_.account);
  if (options_.time_limit) words.push_back("--time=" + slurm_time(*options_.time_limit));
  words.insert(words.end(), options_.flags.begin(), options_.flags.end());
  std::string script = "exec /bin/sh -c";
  for (const auto& word :
       {std::string(kJobScript), std::string("berth"), options_.program,
        to_hex(options_.agent.digest), options_.directory + "/" + place_name(job.alloc.id),
        std::string("--block"), machine::write_block(job.ask.block), std::string("--lease-ms"),
        fmt::format("{}", to_ms(options_.lease))})
    script += " " + shell_quote(word);
  if (options_.outlive) script += " --outlive";
  words.push_back("--wrap=" + script);
  return words;
}

Transport Slurm::transport(const Job& job) const {
  return {.name = job.alloc.machine,
          .words = {"/bin/sh", "-c", std::string(kDoor), "berth", fmt::format("{}", job.number),
                    options_.directory + "/" + place_name(job.alloc.id)},
          .shell = false};
}

std::vector<std::string> Slurm::probe(const Job& job) const {
  return {"srun",
          fmt::format("--jobid={}", job.number),
          "--overlap",
          "--nodes=1",
          "--ntasks=1",
          "--chdir=/",
          "--cpu-bind=none",
          "--quiet",
          "/bin/sh",
          "-c",
          std::string(kProbe),
          "berth",
          options_.directory + "/" + place_name(job.alloc.id),
          fmt::format("{}", kProbeFor_s * 10)};
}

}  // namespace berth::remote
