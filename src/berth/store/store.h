// The durable state of runs behind one interface, which memory (for tests and simulation), SQLite
// and PostgreSQL implement. A runner submits a run, takes it over, and applies batches of changes
// to it; everybody else reads records. What the changes mean is written once, in transition.h.
//
// Durability: what a call returned from is durable; what it did not return from happened whole or
// not at all. Ownership: the caller owns the store; records are plain values. Threads: one at a
// time uses a Store; several processes may open the same database. Failure: every call returns an
// Error (io, full, corrupt, busy, denied, not_found, and others where they are named); after an
// error the store is as it was before the call. Texts may be any bytes; only parameters have to be
// UTF-8.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "berth/base/ids.h"
#include "berth/base/result.h"
#include "berth/base/time.h"
#include "berth/exec/cause.h"

namespace berth::store {

/// A run is `queued` until it has its first allocation, and `running` from then on, also while its
/// tasks wait. It is `done` when no more of its tasks failed than it allows.
enum class RunState : std::uint8_t { queued, running, done, failed, stopped };
/// A task is `cached` when its result was there already, and `skipped` when there is nothing to do:
/// its `when` says so, or an input of it was skipped.
enum class TaskState : std::uint8_t { waiting, running, done, cached, skipped, failed, stopped };
inline constexpr std::size_t kTaskStates = 7;
/// Where the runner of a run stands: it waits for its first alloc (init), evaluates (eval), pauses
/// before its next try (retry), or has ended (done).
enum class Phase : std::uint8_t { init, eval, retry, done };
std::string_view name(RunState state);
/// Returns true if a runner drives the run, or should: it is queued or running.
constexpr bool is_open(RunState state) {
  return state == RunState::queued || state == RunState::running;
}
std::string_view name(TaskState state);
std::string_view name(Phase phase);
std::optional<RunState> run_state(std::string_view name);
std::optional<TaskState> task_state(std::string_view name);
std::optional<Phase> phase(std::string_view name);
/// Whether the task gets no further attempt unless it is reopened: done, cached, skipped, failed.
bool final(TaskState state);

using Values = std::vector<std::pair<std::string, std::string>>;  ///< Names and values as text.
using Numbers = std::vector<std::pair<std::string, double>>;      ///< Names and values.
/// The value of MetricSeen for a metric that has become missing: it was reported with a value that
/// is not finite. No record that is read has it.
inline constexpr double kMissing = std::numeric_limits<double>::infinity();
inline double recorded_value(double value) {
  return std::isfinite(value) ? value : kMissing;
}
/// Replaces or adds the value; removes it if it is kMissing.
inline void set_metric(Numbers& metrics, const std::string& name, double value) {
  const auto at = std::ranges::find(metrics, name, &Numbers::value_type::first);
  if (value == kMissing) {
    if (at != metrics.end()) metrics.erase(at);
  } else if (at != metrics.end()) {
    at->second = value;
  } else {
    metrics.emplace_back(name, value);
  }
}

struct NewTask {
  std::string label;  ///< It is unique in the run: "17", "split", "count/0".
  Values params;      ///< They stand in the order of the file.
};

/// A run as it is submitted, with all its tasks, which are numbered from 1 in this order.
struct NewRun {
  std::string name;       ///< "digits"; the store appends the next number of that name.
  std::string kind;       ///< "command", "experiment", "server" or "flow".
  std::string spec_json;  ///< The specification; it is enough to resume without the user's files.
  std::string directory;  ///< An absolute path, at which relative paths of the run start.
  std::int64_t priority = 0;
  Wall created;
  std::vector<NewTask> tasks;
};

/// How many tasks of a run are in each state.
struct Counts {
  std::int64_t waiting = 0, running = 0, done = 0, cached = 0, skipped = 0, failed = 0, stopped = 0;
  std::int64_t& of(TaskState state);
  std::int64_t total() const;
  bool operator==(const Counts&) const = default;
};

struct RunRecord {
  RunId id;
  std::string name;  ///< "digits-3"; it is never issued again, even when the run is removed.
  std::string kind, spec_json, directory;
  std::int64_t priority = 0;
  RunState state = RunState::queued;
  Wall created;
  std::optional<Wall> started;  ///< When it first became running.
  std::optional<Wall> ended;
  std::string error;   ///< Why the run failed or cannot go on; empty otherwise.
  std::string result;  ///< The outcome as JSON; "" before the end.
  Phase phase = Phase::init;
  std::string alloc;       ///< The primary alloc as JSON; "" while the run has none.
  std::int64_t tries = 0;  ///< Tries since something last went well.
  std::optional<Wall> last_try;
  std::int64_t epoch = 0;  ///< How often a runner has taken the run over.
  // The last runner; its pid is 0 before the first.
  std::int64_t runner_pid = 0;
  std::int64_t runner_started_at = 0;  ///< In the kernel's ticks: an identity, not a date.
  std::string runner_host{};           ///< Its host; "" in a store that one machine uses alone.
  Counts counts;
};

struct TaskRecord {
  TaskNumber number;
  std::string label;
  TaskState state = TaskState::waiting;
  std::int64_t attempts = 0;  ///< How many have started.
  Token token;                ///< The token of the latest attempt; 0 before the first.
  Token forgiven;             ///< Attempts up to this token use up none of the task's retries.
  // The last attempt that has ended has these; see AttemptRecord.
  std::optional<exec::Cause> cause;
  std::optional<int> exit_code;
  int signal = 0;
  Values params;
  /// The last value of each metric, in the order in which the names came first; the place of one
  /// that was missing in between is not defined.
  Numbers metrics;
  // The latest attempt has these.
  std::optional<Wall> started, ended;
  std::string resources;  ///< The resources that it held, as JSON; "" before the first.
  std::string host;
  std::string devices;                  ///< The UUIDs of its devices as a JSON list; "" for none.
  std::string digest, depends;          ///< Those of TaskKeyed; "" before.
  std::optional<std::int64_t> lease{};  ///< That of the latest attempt.
};

struct AttemptRecord {
  std::int64_t number = 0;  ///< 1, 2, … within the task.
  Token token;
  Wall started;
  /// It is absent while the attempt runs, or after its runner died; only the latest may lack it.
  std::optional<Wall> ended;
  std::optional<exec::Cause> cause;  ///< It is absent as `ended` is.
  std::optional<int> exit_code;      ///< It is absent where the attempt did not exit by itself.
  int signal = 0;                    ///< The signal that killed it; 0 for none.
  std::string detail;                ///< A sentence for `why`; "" when there is nothing to add.
  std::string resources, host, devices;
  std::int64_t cpu_ms = 0, peak_mem = 0;    ///< Processor time; the most memory, in bytes.
  std::int64_t log_begin = 0, log_end = 0;  ///< Its frames in the run's log file, in bytes.
  /// A number that its holder increases while it lives; none: its runner keeps it.
  std::optional<std::int64_t> lease{};
};

struct MetricRecord {
  Token token;
  std::string name;
  double value = 0;
  Wall at;
  std::int64_t sequence = 0;  ///< The order within the run.
};

/// The outputs of a task under the digest of all its inputs. The results are the cache of all runs.
struct ResultRecord {
  std::string digest;
  std::string outputs;  ///< The caller says what they are.
  std::string origin;   ///< The task that wrote them: "count-2/split".
  Wall used;            ///< When the result was kept last.
  /// A number that grows each time a result is kept that was not, or with other outputs or origin.
  std::int64_t sequence = 0;
};

// The changes of a run. Those of a batch are applied in order, all of them or none.

/// The task becomes running. It must not be final. An attempt of it that still runs is ended first,
/// as superseded. stale: the token is not greater than every earlier token of the run.
struct AttemptStarted {
  TaskNumber task;
  Token token;
  Wall at;
  std::string resources, host, devices = {};
  std::optional<std::int64_t> lease{};  ///< Where several processes start attempts, each its own.
};
/// The holder of the attempt lives, and has increased its lease to this. It is ignored unless the
/// task runs under this token.
struct AttemptKept {
  TaskNumber task;
  Token token;
  std::int64_t lease = 0;
};
/// The parameters of the task are these from now on. It is ignored unless the task runs under this
/// token. invalid: a parameter comes twice or is not UTF-8.
struct ParamsSet {
  TaskNumber task;
  Token token;
  Values params;
};
/// The worker's report of the start. It is ignored unless the task runs under this token.
struct AttemptPlaced {
  TaskNumber task;
  Token token;
  std::string devices;
  std::optional<Wall> at{};  ///< The start of an attempt that was sent ahead of it.
};
/// It is ignored unless the task runs under this token.
struct MetricSeen {
  TaskNumber task;
  Token token;
  std::string name;
  double value = 0;
  Wall at;
};
/// An attempt ends once: unless the task runs under this token, the change is ignored and counted
/// as refused. invalid: `next` is running, cached or skipped.
struct AttemptEnded {
  TaskNumber task;
  Token token;
  Wall at;
  TaskState next = TaskState::done;  ///< done, failed, stopped, or waiting for another attempt.
  exec::Cause cause = exec::Cause::ok;
  std::optional<int> exit_code;
  int signal = 0;
  std::string detail;
  std::int64_t cpu_ms = 0, peak_mem = 0, log_begin = 0, log_end = 0;
};
/// A waiting or stopped task gets another state without an attempt; a task in any other state stays
/// as it is. invalid: `to` is running.
struct TaskMoved {
  TaskNumber task;
  TaskState to = TaskState::waiting;
};
/// A final task becomes waiting, and its attempts so far use up none of its retries; a task in any
/// other state stays as it is.
struct TaskReopened {
  TaskNumber task;
};
/// The tasks are numbered on, and wait. exists: the run has a label already, or a label comes
/// twice; invalid: as for submit().
struct TasksAdded {
  std::vector<NewTask> tasks;
};
/// The digest of all that the task's outputs depend on. It is told before the task runs or is taken
/// from the cache, and kept for `why`.
struct TaskKeyed {
  TaskNumber task;
  std::string digest;
  std::string depends;  ///< The text of which `digest` is the digest.
};
/// A result was made or used again; it replaces the earlier one of its digest.
struct ResultKept {
  std::string digest, outputs, origin;
  Wall at;
};
/// The run gets another state. `at` becomes the start when it is running for the first time, and
/// the end when it is done, failed or stopped; an open run has no end.
struct RunMoved {
  RunState to = RunState::running;
  Wall at;
  std::string error;  ///< It replaces the earlier one, as the result does.
  std::string result = {};
};
/// The runner reached another phase. All members replace the earlier ones.
struct RunStepped {
  Phase to = Phase::init;
  std::string alloc = {};
  std::int64_t tries = 0;
  std::optional<Wall> last_try = {};
};
/// The specification is another one from now on.
struct RunSpecified {
  std::string spec_json;
};
using Change = std::variant<AttemptStarted, AttemptKept, ParamsSet, AttemptPlaced, MetricSeen,
                            AttemptEnded, TaskMoved, TaskReopened, TasksAdded, TaskKeyed,
                            ResultKept, RunMoved, RunStepped, RunSpecified>;

/// How long the attempts that have ended held the same resources, in all.
struct Usage {
  std::string resources;  ///< As their attempts have it.
  Duration held{};
};

/// What somebody who knows a run has to hear to know it again.
struct News {
  RunRecord run;     ///< Without its specification.
  Token last_token;  ///< The token of the next attempt must be greater.
  std::vector<TaskRecord> tasks;
};

struct Applied {
  std::int64_t refused = 0;  ///< How many ends of attempts had a stale token.
};

class Store {
 public:
  virtual ~Store() = default;

  /// The record has the run's name and number. exists: a label comes twice; invalid: the run has no
  /// name or more than 1,000,000 tasks; a parameter of a task comes twice or is not UTF-8.
  virtual Result<RunRecord> submit(const NewRun& run) = 0;

  /// A runner takes the run over. The epoch grows by one; the tokens of this epoch are
  /// epoch·2^32 + 1, …, and those of earlier epochs are stale from now on. Running tasks become
  /// waiting again (their attempts end as runner_lost), and stopped ones too; final tasks stay as
  /// they are, and so does the state of the run. Only attempts with a token of `alive` outlived
  /// their runner: they keep running under it, if it is still their task's. The caller makes sure,
  /// by a lock on the run, that no other runner lives.
  virtual Result<RunRecord> take_over(RunId run, std::int64_t runner_pid,
                                      std::int64_t runner_started_at, Wall now,
                                      std::span<const Token> alive) = 0;

  /// All changes are applied, or none. stale: an attempt was to start with a token that is not
  /// greater than all earlier ones, or of a final task; not_found: there is no such run, or no such
  /// task to start, move, reopen or key.
  virtual Result<Applied> apply(RunId run, std::span<const Change> changes) = 0;

  virtual Result<std::vector<RunRecord>> runs() = 0;  ///< Oldest first, without specifications.
  virtual Result<RunRecord> find_run(std::string_view name) = 0;
  virtual Result<std::vector<TaskRecord>> tasks(RunId run) = 0;  ///< In the order of their numbers.
  virtual Result<TaskRecord> find_task(RunId run, std::string_view label) = 0;
  /// The run, those of its tasks that `open` names, and then all behind `last`, as they are at one
  /// moment. It costs the same however many other tasks there are. not_found: there is no such run,
  /// or no such task.
  virtual Result<News> news(RunId run, std::span<const TaskNumber> open, TaskNumber last) = 0;
  virtual Result<std::vector<AttemptRecord>> attempts(RunId run, TaskNumber task) = 0;
  /// Those with a greater sequence number than `after`, in the order of theirs.
  virtual Result<std::vector<MetricRecord>> metrics(RunId run, TaskNumber task,
                                                    std::int64_t after = 0) = 0;
  virtual Result<std::vector<Usage>> usage(RunId run) = 0;  ///< Sorted by resources.
  /// The run goes with all its tasks; its name is never issued again. not_found: no such run.
  virtual Status remove(RunId run) = 0;

  virtual Result<ResultRecord> result(const std::string& digest) = 0;
  /// The results with a greater sequence number than `after`, in the order of theirs.
  virtual Result<std::vector<ResultRecord>> results(std::int64_t after) = 0;
  /// Removes the results that were used last before `unused_since`, unless a run that is not done
  /// has a task with that digest. Returns how many it removed.
  virtual Result<std::int64_t> forget_results(Wall unused_since) = 0;
};

std::unique_ptr<Store> memory_store();
/// The store in a SQLite file, which is created (0600) or brought to the current schema; its
/// directory must exist. Every call waits up to a minute for other writers. busy: that was too
/// short; full, denied, io; corrupt: the file is damaged, another program's, or of a newer Berth;
/// impossible: it is on a network file system.
Result<std::unique_ptr<Store>> sqlite_store(const std::string& file);

}  // namespace berth::store
