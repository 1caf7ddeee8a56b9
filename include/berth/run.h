// Runs: commands, experiments and flows, which Berth carries out durably. A run is driven by a
// process of its own, the `berth` program, which outlives the one that submitted it,
//
//   auto runs = berth::Runs::open();
//   auto name = runs->submit_file("sweep.yaml");            // "digits-3": recorded, and started
//   auto run = runs->wait(*name);                           // until it has ended
//   for (auto& task : *runs->tasks(*name)) std::cout << task.label << ": " << task.state << '\n';
//
// or by this process, on this machine or on a Cluster of the program's own:
//
//   auto name = runs->record_file("sweep.yaml", {.elsewhere = true});
//   auto run = runs->drive(*name, {.cluster = &lab});       // killed: drive() it again
//
// Units: as resources.h; times are since 1970 UTC. Durability: a run that has a name is recorded,
// and is not lost (docs/explanation/promises.md). Ownership: values are the caller's; closing a
// Runs ends no run. Threads: a Runs belongs to one thread at a time; who follows or stops what
// another thread drives opens one more. Errors: those of the store; invalid, not_found and
// impossible of what is submitted; not_found, where a runner has to be started and there is no
// `berth`. What a class of the program's own throws is caught where it is called, and is an error
// as if it had returned `invalid` with the exception's words.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/error.h"
#include "berth/machine.h"
#include "berth/resources.h"
#include "berth/topology.h"

namespace berth {

struct RunsOptions {
  std::string state_directory{};  ///< "": where `berth` has its runs (BERTH_DB, XDG_STATE_HOME).
  std::string program{};          ///< The `berth` to use; "": $BERTH_BIN, or the one in PATH.
  /// Receives a sentence for the user, such as a warning about a file that is submitted, from
  /// within the call that it is about. Exceptions that it throws are ignored.
  std::function<void(const std::string& note)> on_note{};
};

/// One command as a run.
struct Command {
  std::vector<std::string> argv;
  std::string name{};       ///< Of the run; "": that of the program.
  std::string directory{};  ///< Where it starts; "": the working directory.
  Resources resources{};    ///< Empty: one core.
  int retries = 0;
  std::chrono::milliseconds timeout{};                             ///< Of each attempt; 0: none.
  std::vector<std::pair<std::string, std::string>> environment{};  ///< Over that of this process.
  std::vector<std::string> clusters{};  ///< As `berth run --cluster`; empty: this machine.
};

/// How many tasks are in each state; they add up to the tasks.
struct TaskCounts {
  std::int64_t waiting = 0, running = 0, done = 0, cached = 0, skipped = 0, failed = 0, stopped = 0;
};

struct Run {
  std::string name;  ///< "digits-3"
  std::string kind;  ///< "command", "experiment", "flow", "server" or "study".
  /// "queued", "running", "done", "failed", "stopped", or "interrupted": its runner died, and
  /// resume() goes on with it.
  std::string state;
  std::string error;  ///< Why it failed or cannot go on; "" otherwise.
  TaskCounts counts;
  std::chrono::milliseconds created{};
  std::optional<std::chrono::milliseconds> ended{};

  bool goes_on() const { return state == "queued" || state == "running"; }
};

struct Task {
  std::string label;  ///< "17" of an experiment, "map/A" of a flow.
  std::string state;  ///< "waiting", "running", "done", "cached", "skipped", "failed" or "stopped".
  std::int64_t attempts = 0;
  std::optional<int> exit_code{};  ///< Of the last attempt that exited by itself.
  std::vector<std::pair<std::string, std::string>> params{};
  std::vector<std::pair<std::string, double>> metrics{};  ///< The last value of each.
};

/// Is told what is durable of a run. Its calls come from within follow() or drive(). One that
/// throws ends follow(), and stops the run of drive(), with that error.
class BERTH_EXPORT RunObserver {
 public:
  virtual ~RunObserver();
  /// The state of the run or of its tasks has changed.
  virtual void on_progress(const Run& /*run*/) {}
  /// The task has ended for now: it is done, cached, skipped, failed or stopped.
  virtual void on_task_end(const Task& /*task*/) {}
  /// Bytes that a task printed, in the order of its stream; not cut at lines.
  virtual void on_output(const std::string& /*task*/, bool /*is_error*/,
                         std::string_view /*bytes*/) {}
  /// Of drive(): a sentence for people, such as why no task starts.
  virtual void on_note(const std::string& /*note*/) {}
  /// Of follow(): asked about ten times a second; false ends it, not the run.
  virtual bool goes_on() { return true; }
};

// ---- A cluster of one's own ----

/// What a machine of a cluster has, and what of it can be leased now.
struct Offer {
  std::string machine;
  Resources total, free;
};

/// A leased part of one machine, in which tasks run side by side as they fit.
struct Alloc {
  std::string id;       ///< The cluster's own, never used twice.
  std::string machine;  ///< For people; and a task that failed there is tried elsewhere.
  Resources resources;  ///< At least the `min` that was wished for.
  /// For so long it lives unless keepalive() renews it; 0: until it is freed.
  std::chrono::milliseconds lease{};
  /// The devices of `resources`, or the parts of them: each attempt gets some of these to itself.
  /// Empty: no attempt is told which are its own.
  std::vector<DevicePart> devices{};
  /// What the devices are, by UUID, and how they are joined; nullptr: NVIDIA's, all alike.
  std::shared_ptr<const topology::Topology> topology{};
};

/// What an alloc is asked for.
struct Wish {
  Requirements requirements;  ///< At least `min`; at best room for `width` of it.
  std::int64_t priority = 0;  ///< Of the run.
  std::vector<std::pair<std::string, std::string>> labels{};  ///< run, program, and the run's own.
  std::vector<std::string> avoid{};  ///< Machines not to choose, where there are others.
  DeviceSelection selection{};       ///< Of each `min`.
};

/// A task's command, to be run once.
struct Attempt {
  std::int64_t id = 0;            ///< Greater than that of any earlier one of the run.
  std::string task;               ///< "digits-3/17"
  std::vector<std::string> argv;  ///< argv[0] with a slash in it is relative to `directory`.
  std::string directory;          ///< Absolute, on this machine.
  std::vector<std::pair<std::string, std::string>> environment;  ///< Over that of the machine.
  Resources resources;
  std::vector<DevicePart> devices{};  ///< Its own, to which `environment` confines it.
  std::chrono::milliseconds grace{};  ///< Between TERM and KILL, when it is stopped.
  /// Files and directories of this machine that it reads and writes, where others do not see them.
  std::vector<std::string> inputs, outputs;
};

/// How an attempt ended: with exit code 0 unless it says otherwise.
struct AttemptEnd {
  int exit_code = 0;
  int signal = 0;              ///< That killed it.
  bool out_of_memory = false;  ///< Killed at its `mem`: with a retry left it may get more.
  bool lost = false;           ///< Its machine is gone: it runs again, and no retry is used up.
  std::string detail{};        ///< A sentence for `berth why`.
  std::chrono::milliseconds cpu{};
  std::int64_t peak_mem = 0;
};

/// By which a cluster tells of one attempt: from any thread, and also within start(). It may be
/// copied, and outlive all else; an attempt whose reporters are all gone unended counts as lost.
class BERTH_EXPORT Reporter {
 public:
  /// Bytes as they were printed. Metric lines in them count. Of more than 64 MiB that are not taken
  /// yet the rest is dropped.
  void output(std::string_view bytes, bool is_error = false) const;
  /// Once, after all output; what comes then is passed over.
  void ended(const AttemptEnd& end) const;

 private:
  friend class OwnWorker;
  struct State;
  explicit Reporter(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// Where the tasks of a run may run. drive() calls it on its own thread, and waits for each call.
class BERTH_EXPORT Cluster {
 public:
  virtual ~Cluster();
  /// drive() begins, or tries anew. Attempts that an earlier process or try began, and did not
  /// record as ended, will run again: what runs of them has to have ended when this returns.
  virtual Status begin(const std::string& /*run*/) { return {}; }
  /// Leases room. busy: none now, it is asked again soon; impossible: it is more than there will
  /// ever be. Where all that it returns is other errors, drive() ends with that after 2 s, or after
  /// a minute if the kind is retryable().
  virtual Result<Alloc> allocate(const Wish& wish) = 0;
  /// Renews a lease. stale: the alloc is gone, and what ran there runs again elsewhere.
  virtual Status keepalive(const Alloc& /*alloc*/) { return {}; }
  /// The run needs it no longer; what ran there has ended, or was told to end at once.
  virtual void free(const Alloc& alloc) = 0;
  /// Starts the attempt and returns. An error is its end: if retryable(), it is tried some times
  /// more, as if a machine had failed it; else the task has failed.
  virtual Status start(const Alloc& alloc, const Attempt& attempt, Reporter reporter) = 0;
  /// Ends the attempt, which reporter.ended() then tells of; `at_once`: without grace. One that has
  /// not ended 10 s after it was to end at once is given up with its alloc.
  virtual void stop(const Alloc& alloc, const Attempt& attempt, bool at_once) = 0;
};

/// A machine of a StaticCluster: all that it has.
struct ClusterMachine {
  std::string name;
  Resources resources;
  /// Its devices, to which gpu, gpu_mem and gpu_slots of `resources` then do not matter. nullptr:
  /// they are "0", "1", … up to its gpu, all alike, which have that gpu_mem and gpu_slots together.
  std::shared_ptr<const topology::Topology> topology{};
};

/// A cluster of machines that are there: it leases parts of them, of the machine that fits the wish
/// closest, and of its devices those that are best joined. Only start() and stop() are left to say.
class BERTH_EXPORT StaticCluster : public Cluster {
 public:
  /// Names differ. Of a topology that is inconsistent, and of more than topology::kMostDevices,
  /// allocate() tells (invalid).
  explicit StaticCluster(const std::vector<ClusterMachine>& machines);
  ~StaticCluster() override;
  std::vector<Offer> offers() const;
  Result<Alloc> allocate(const Wish& wish) override;
  void free(const Alloc& alloc) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Asks drive() to stop. A Stop that was asked stops each drive() that it is given to.
class BERTH_EXPORT Stop {
 public:
  Stop();
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;
  ~Stop();
  /// Once: what runs is ended, and the run can be gone on with; again: at once. From any thread or
  /// signal handler.
  void request() noexcept;

 private:
  friend class Runs;
  struct State;
  std::unique_ptr<State> state_;
};

struct DriveOptions {
  Cluster* cluster = nullptr;  ///< nullptr: this machine, whose tasks end with this process.
  RunObserver* observer = nullptr;
  Stop* stop = nullptr;  ///< Of one drive() at a time.
};

/// What is tried again of a run.
enum class Again : std::uint8_t {
  failed,  ///< The tasks that failed.
  all,     ///< Everything; of a flow, what the cache has is done.
  file,    ///< Everything of a flow, as its file is now.
};

/// What a run of a file is requested with. A field that is not set leaves what the file says.
struct FileOptions {
  std::string name{};         ///< Name of the run, without its number.
  std::int64_t parallel = 0;  ///< Maximum number of tasks in parallel.
  /// Parameters of a flow; a name that is given several times has a list of values.
  std::vector<std::pair<std::string, std::string>> set{};
  bool elsewhere = false;  ///< It is for a Cluster: nothing is checked against this machine.
  std::vector<std::pair<std::string, std::string>> labels{};
  std::vector<std::string> clusters{};  ///< As `berth run --cluster`; the first one is preferred.
  int retries = 0;                      ///< Of each task.
  std::chrono::milliseconds timeout{};  ///< Of each attempt.
  std::optional<std::int64_t> allow_failures{};  ///< The number of tasks that may fail.
  std::vector<std::string> targets{};     ///< Of a flow: steps ("map") or tasks ("map/A") to run.
  std::vector<std::string> force{};       ///< Of a flow: steps that run although they are cached.
  std::vector<std::string> warm_start{};  ///< Of an experiment: earlier runs to begin with.
};

class BERTH_EXPORT Runs {
 public:
  static Result<Runs> open(const RunsOptions& options = {});
  Runs(Runs&&) noexcept;
  Runs& operator=(Runs&&) noexcept;
  ~Runs();

  /// Records the run, starts its runner, and returns its name.
  Result<std::string> submit(const Command& command);
  /// The same for the file of an experiment or a flow.
  Result<std::string> submit_file(const std::string& file, const FileOptions& options = {});

  /// Records the run, which then waits for drive(), resume() or `berth resume`.
  Result<std::string> record(const Command& command, bool elsewhere = false);
  Result<std::string> record_file(const std::string& file, const FileOptions& options = {});
  /// Drives a run in this process until it has ended or `stop` was asked; one that was stopped or
  /// interrupted goes on. `berth stop` sends this process SIGTERM. After an error the run is
  /// stopped, with that error. `notify` and `on_end` of its file work as with `berth run`: `berth`
  /// sends the notifications, and on_note() receives the output of `on_end`. busy: it is driven
  /// already.
  Result<Run> drive(const std::string& name, const DriveOptions& options = {});

  Result<std::vector<Run>> list();  ///< Oldest first.
  Result<Run> find(const std::string& name);
  Result<std::vector<Task>> tasks(const std::string& name);
  /// All that a task printed so far on one of its streams.
  Result<std::string> output(const std::string& name, const std::string& task,
                             bool is_error = false);

  /// Tells the observer what has happened from the run's begin on and what happens until it ends,
  /// or until the observer has enough. Returns the run as it is then.
  Result<Run> follow(const std::string& name, RunObserver& observer);
  /// Waits until the run has ended, or `most` has passed, and returns it as it is then: goes_on()
  /// tells which. 0: however long that takes.
  Result<Run> wait(const std::string& name, std::chrono::milliseconds most = {});

  /// Ends what runs, so that it can be gone on with; returns once that is recorded.
  Status stop(const std::string& name);
  /// Goes on with a run that was stopped or interrupted.
  Status resume(const std::string& name);
  /// Tries tasks again, and goes on with what was not finished; their retries count anew. busy: it
  /// is driven. invalid: Again::file of what is no flow.
  Status retry(const std::string& name, Again what = Again::failed);
  /// Makes the failed tasks wait again (with `all`: whatever has ended) for drive(); returns their
  /// labels. busy: it is driven.
  Result<std::vector<std::string>> reopen(const std::string& name, bool all = false);
  /// Removes its record, output and files. busy: it is driven.
  Status remove(const std::string& name);

  /// Answers a call of the HTTP interface in this process, without a server: call("GET",
  /// "/v1/runs/digits-3/best") returns the JSON of `berth best digits-3 --json`.
  /// docs/reference/library.md lists the calls. A name with a slash is one part of the path:
  /// "/v1/tasks/digits-3%2F17/why". Errors: those of the call; not_found: there is no such call.
  Result<std::string> call(std::string_view method, std::string_view path,
                           std::string_view body = {});

 private:
  struct State;
  explicit Runs(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace berth
