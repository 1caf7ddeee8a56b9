// What Slurm's commands print, and the words that they are asked with. The formats are asked for
// field by field, so that they are the same for every version and nobody's settings change them.
//
// What a person may have chosen (names of jobs, comments) is never among the fields. Pure. Failure:
// invalid, with the line; lines of nodes and jobs that make no sense are an error, not passed over.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/result.h"
#include "berth/base/time.h"
#include "berth/resource/resources.h"

namespace berth::remote {

inline constexpr std::int64_t kMiB = 1 << 20;  // Slurm counts memory and disk in these

/// "gpu:a100:4": so many GPUs of a type ("" where the site names none).
struct SlurmGpus {
  std::string type;
  std::int64_t count = 0;
  bool operator==(const SlurmGpus&) const = default;
};

/// Nodes of one partition that are alike and in the same state.
struct SlurmNodes {
  std::string partition;
  bool standard = false;            // jobs that name no partition go to this one
  bool open = true;                 // it takes and starts jobs
  std::optional<Duration> longest;  // that a job may run; none: as long as it likes
  std::int64_t count = 0;
  std::string state;  // "idle", "mixed", "allocated", "down*", …
  std::int64_t cpus = 0;
  std::int64_t mem = 0, disk = 0;  // bytes
  std::vector<SlurmGpus> gpus;
  bool operator==(const SlurmNodes&) const = default;
};
inline constexpr std::string_view kSlurmNodesFormat = "%P|%a|%l|%D|%T|%c|%m|%d|%G";
Result<std::vector<SlurmNodes>> read_slurm_nodes(std::string_view text);
/// Whether nodes in this state can run something, now or when what runs there ends.
bool works(const SlurmNodes& nodes);

/// A partition as a whole, for people.
struct SlurmPartition {
  std::string name;
  bool standard = false, open = true;
  std::optional<Duration> longest{};
  std::int64_t nodes = 0, idle = 0, down = 0;
  Resources free{}, total{};      // cpu, mem, gpu; free only of nodes that take jobs
  std::vector<SlurmGpus> gpus{};  // of all nodes, by type
};
inline constexpr std::string_view kSlurmPartitionsFormat =
    "Partition:|,Available:|,Time:|,StateLong:|,CPUsState:|,Memory:|,AllocMem:|,Gres:|,GresUsed:|";
/// From a line for each node of each.
Result<std::vector<SlurmPartition>> read_slurm_partitions(std::string_view text);

/// Whose job it is, for people: Berth's run where it is one of Berth's.
struct SlurmHolder {
  std::string partition, user, run;
  bool waits = false;
  bool operator==(const SlurmHolder&) const = default;
};
inline constexpr std::string_view kSlurmHoldersFormat = "%P|%T|%u|%j|%k";
Result<std::vector<SlurmHolder>> read_slurm_holders(std::string_view text);

enum class SlurmPhase : std::uint8_t {
  waits,   // it may start some time
  runs,    // its node is its own
  ending,  // it does not run any more, or is not allowed to
  over,    // Slurm is done with it
};
struct SlurmJob {
  std::int64_t id = 0;
  std::string state, reason;     // "PENDING", "Resources"
  std::optional<Duration> left;  // until Slurm ends it; none: no limit, or not told
  std::string node;              // the first; empty: none yet
  std::string partition;
  std::int64_t cpus = 0, mem = 0;  // that it got, or asks for; mem 0: not told
  std::vector<SlurmGpus> gpus;
  bool operator==(const SlurmJob&) const = default;
};
inline constexpr std::string_view kSlurmJobsFormat =
    "JobID:|,State:|,Reason:|,TimeLeft:|,BatchHost:|,Partition:|,tres-alloc:|";
Result<std::vector<SlurmJob>> read_slurm_jobs(std::string_view text);
SlurmPhase phase_of(const SlurmJob& job);
/// Why a job that is over ended otherwise than by itself: "node failure"; empty: by itself.
std::string_view ended_because(const SlurmJob& job);

/// Returns an error message about the `named` partitions that do not exist, with near names and all
/// existing partitions: "partition 'gpus' does not exist (did you mean 'gpu'?); Slurm has gpu,
/// main". Returns "" if all of them exist.
std::string missing_partitions(std::span<const std::string> named,
                               std::span<const std::string> existing);
/// Returns the error message for an entry that names no partition on a Slurm without a default one.
std::string no_default_partition(std::span<const std::string> existing);

/// What `sbatch --parsable` prints: "17", or "17;cluster".
Result<std::int64_t> read_slurm_job_id(std::string_view text);

/// "5:00", "1-02:03:04", "UNLIMITED", "infinite", "n/a"; none: no limit, or not told.
Result<std::optional<Duration>> read_slurm_time(std::string_view text);
/// "1-02:03:04", rounded up to a whole second.
std::string slurm_time(Duration duration);
/// "cpu=4,mem=1.5G,node=1,gres/gpu:a100=2": into the job's amounts.
Status read_slurm_amounts(std::string_view text, SlurmJob& job);

/// What the standard error of a command that failed means.
enum class SlurmTrouble : std::uint8_t {
  unreachable,  // the controller does not answer: nothing is known of any job
  no_such_job,  // it has forgotten the job, or never knew it
  refused,      // this partition, account or limit will not have such a job
  not_now,      // a limit on how many, or how much at once
  other,
};
SlurmTrouble trouble_of(std::string_view complaint);
/// Returns its first line that is not empty, without "sbatch: error: ".
std::string gist_of(std::string_view complaint);

/// "digits-3,team=vision": the run of these labels and what it is called by besides, each as
/// slurm_name().
std::string slurm_comment(std::span<const std::pair<std::string, std::string>> labels);
/// A name for the queue made of [A-Za-z0-9_.-]: of labels, which may hold anything.
std::string slurm_name(std::string_view text);
/// What may stand as an account, a partition, a constraint or a flag's value in a command's words.
bool plain_slurm_word(std::string_view text);

}  // namespace berth::remote
