// A Slurm cluster: each alloc is a job of one node, in which an agent works.
//
//   allocate()   sinfo (what there is)  →  match()  →  sbatch  →  squeue, till it runs  →  the
//                agent there answers through srun  →  an alloc
//
// Nothing waits: each call takes what the one command at work came to and starts the next one that
// is due; what is not there yet is busy, and a command's end says that something has changed. Jobs
// are asked for by a name of this object's own, by which they are found again whatever was not
// answered.
//
// What is left when nobody is there any more: a job that runs ends with its agent, whose lease
// nobody renews; one that waits is cancelled by a guard (berth-agent guard), a process that
// outlives this one, or, when that is gone too, ends by its agent as soon as it starts. A deadline
// would not do: only Slurm's operators may move it on.
//
// Ownership: refers to Env; its end cancels what was not handed out. Threads: one. Failure: as
// Cluster has it. A partition that refuses, or whose jobs do not come to work, is left alone for a
// growing while; denied: all that could serve a wish refuse it. A controller that does not answer
// (io) is asked again, and what runs or waits there goes on.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "berth/remote/command.h"
#include "berth/remote/slurm/slurm_match.h"
#include "berth/remote/slurm/slurm_text.h"
#include "berth/remote/transport.h"

namespace berth::remote {

struct SlurmOptions {
  std::string name{};  // of the cluster: "lab"
  std::vector<std::string>
      partitions{};  // in the order in which they are tried; none: the standard
  std::string account{};
  std::optional<Duration> time_limit{};      // of each job; none: the partition's
  Duration drain = std::chrono::minutes(1);  // before that nothing new is started
  std::vector<std::string> flags{};          // of sbatch, a word each
  SlurmGpuTypes gpus{};                      // by GRES type
  std::size_t most = 16;                     // jobs at a time
  std::string directory{};                   // on the nodes: below it each alloc has its own
  Duration lease = std::chrono::minutes(2);  // of the agents
  bool outlive = false;                      // they go on without us until nothing runs
  std::string program{};                     // berth-agent here, and there if it is shared
  AgentFile agent{};
};

class Slurm final : public RemoteCluster {
 public:
  Slurm(os::Env& env, SlurmOptions options);
  Slurm(const Slurm&) = delete;
  Slurm& operator=(const Slurm&) = delete;
  ~Slurm() override;

  /// Allocs that run and that nobody took.
  Result<std::vector<cluster::Offer>> offers() override;
  Result<cluster::Alloc> accept(const cluster::Offer& offer,
                                const std::optional<machine::Request>& part,
                                const cluster::Labels& labels) override;
  Result<cluster::Alloc> allocate(const cluster::Wish& wish) override;
  /// Until shortly before the job's end: soon, so that one that ended is noticed.
  Result<std::optional<Mono>> keepalive(cluster::AllocId id) override;
  Result<cluster::Alloc> inspect(cluster::AllocId id) override;
  Status free(cluster::AllocId id) override;
  Mono retry_at() override;
  void stop_waiting() override;
  /// Starts what is due without being asked: a look at the queue, say, while a job waits.
  std::optional<Mono> tend() override;
  Result<LeaseDirectory> lease_directory(cluster::AllocId id) override;

 private:
  struct Job {
    enum class State : std::uint8_t {
      wanted,  // not asked for yet
      waits,   // in the queue
      starts,  // runs, and nobody has heard of its agent
      ready,
      over
    };
    cluster::Alloc alloc;
    SlurmAsk ask;
    std::vector<std::string> avoid{};  // nodes on which it does not start
    State state = State::wanted;
    std::int64_t number = 0;  // Slurm's; 0: not told yet
    std::string reason;       // why it waits; of one that is over: why
    std::optional<Mono> ends;
    bool taken = false;  // it is somebody's alloc
    bool unwanted = false, cancelling = false;
  };
  using Then = void (Slurm::*)(const CommandEnd&);

  void progress();
  bool begin_next();
  std::optional<Mono> next_command() const;
  void begin(std::vector<std::string> words, Then then);
  void after_guard(const CommandEnd& outcome);
  void after_nodes(const CommandEnd& outcome);
  void after_submit(const CommandEnd& outcome);
  void after_jobs(const CommandEnd& outcome);
  void after_cancel(const CommandEnd& outcome);
  void after_probe(const CommandEnd& outcome);
  void see(Job& job, const SlurmJob* seen);
  bool answered(const CommandEnd& outcome);
  void rest(const std::string& partition, std::string_view why, ErrorKind kind = ErrorKind::io);
  PausedPartitions paused() const;
  static std::string place_name(cluster::AllocId id);
  std::vector<std::string> submission(const Job& job) const;
  std::vector<std::string> probe(const Job& job) const;
  Transport transport(const Job& job) const;
  Job* find(cluster::AllocId id);
  Job* first(Job::State state);
  Result<cluster::Alloc> take(Job& job, const cluster::Labels& labels);
  static bool serves(const Job& job, const cluster::Wish& wish);
  static bool avoids(const Job& job, std::span<const std::string> nodes);
  std::unexpected<Error> refusal(Error error) const;
  std::string waiting_for() const;

  struct Rest {
    Mono until{};
    int times = 0;
    std::string why;
    ErrorKind kind = ErrorKind::io;
  };

  os::Env& env_;
  const SlurmOptions options_;
  const std::string name_;  // of all its jobs
  exec::Environment environment_;
  bool guarded_ = false;

  std::unique_ptr<Command> command_;
  Then then_ = nullptr;
  cluster::AllocId concerns_{};  // of the errand, where that is about one job

  std::vector<SlurmNodes> nodes_;
  std::optional<Mono> nodes_at_, look_at_;
  Duration look_pause_{}, nodes_age_{};
  std::optional<Error> nodes_error_;
  int silent_ = 0;  // times in a row that the controller did not answer
  Mono quiet_until_{};
  bool seeks_ = false;

  std::map<std::string, Rest> rests_;  // of partitions
  std::set<std::string> nodes_of_jobs_;
  /// Nodes without which Slurm has none that would do, until when that is believed, and its words.
  std::map<std::vector<std::string>, std::pair<Mono, std::string>> unavoidable_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<std::int64_t> strays_;  // of our name, and not known: to be cancelled
};

}  // namespace berth::remote
