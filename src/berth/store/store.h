// Durable state of runs behind one interface: memory (tests, simulation) and SQLite; PostgreSQL
// later. What a call returned from is durable; what it did not return from happened whole or not
// at all.
//
// Ownership: the caller owns the store; records are plain values. Threads: one at a time per
// Store; several processes may open the same SQLite store. Failure: every call returns an Error
// (io, full, corrupt, busy, denied, not_found; others where said); after an error the store is as
// before the call. Texts are any bytes, but for parameters, which are UTF-8.
#pragma once

#include <cstdint>
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

namespace berth::store {

enum class RunState : std::uint8_t { waiting, running, done, failed, stopped };
/// cached: its result was there already; skipped: there is nothing to do, by its `when` or because
/// what it takes in was skipped.
enum class TaskState : std::uint8_t { waiting, running, done, cached, skipped, failed, stopped };
inline constexpr std::size_t kTaskStates = 7;
/// Where the runner of a run stands: it waits for its first alloc, evaluates, pauses before it
/// tries again, or is through.
enum class Phase : std::uint8_t { init, eval, retry, done };
std::string_view name(RunState state);
std::string_view name(TaskState state);
std::string_view name(Phase phase);
std::optional<RunState> run_state(std::string_view name);
std::optional<TaskState> task_state(std::string_view name);
std::optional<Phase> phase(std::string_view name);
/// No further attempt will be made, unless a failed one is reopened: done, cached, skipped, failed.
bool final(TaskState state);

using Values = std::vector<std::pair<std::string, std::string>>;  // name, value as text
using Numbers = std::vector<std::pair<std::string, double>>;      // name, value

struct NewTask {
  std::string label;  // unique in the run: "17", "split", "count/0"
  Values params;      // in the order of the file
};

/// What is submitted, whole. Tasks are numbered from 1 in the given order.
struct NewRun {
  std::string name;       // "digits": the store appends the next number of that name
  std::string kind;       // "command" or "experiment"
  std::string spec_json;  // what was asked for, enough to resume without the person's files
  std::string directory;  // absolute; relative paths of the run start here
  std::int64_t priority = 0;
  Wall created;
  std::vector<NewTask> tasks;
};

struct Counts {
  std::int64_t waiting = 0, running = 0, done = 0, cached = 0, skipped = 0, failed = 0, stopped = 0;
  std::int64_t& of(TaskState state);
  std::int64_t total() const;
  bool operator==(const Counts&) const = default;
};

struct RunRecord {
  RunId id;
  std::string name;  // "digits-3", unique, never issued again even when the run is removed
  std::string kind, spec_json, directory;
  std::int64_t priority = 0;
  RunState state = RunState::waiting;
  Wall created;
  std::optional<Wall> started, ended;
  std::string error;   // why it failed or cannot go on; empty otherwise
  std::string result;  // what came of it, as JSON; "" before its end
  Phase phase = Phase::init;
  std::string alloc;       // its primary one, as JSON; "" while it has none
  std::int64_t tries = 0;  // since something last went well
  std::optional<Wall> last_try;
  std::int64_t epoch = 0;       // how often a runner took the run over
  std::int64_t runner_pid = 0;  // of the last runner; 0: none yet
  std::int64_t runner_started_at =
      0;                      // its start time as the kernel counts it: identity, not a date
  std::string runner_host{};  // where it is, or was; "": here, where all runners are
  Counts counts;
};

struct TaskRecord {
  TaskNumber number;
  std::string label;
  TaskState state = TaskState::waiting;
  std::int64_t attempts = 0;     // started so far
  Token token;                   // of the latest attempt; 0 before the first
  Token forgiven;                // attempts up to it take none of the task's retries
  std::optional<int> exit_code;  // of the last ended attempt, as is the cause
  std::string cause;             // "exit 1", "time limit", …; "" when none
  Values params;
  Numbers metrics;  // last value of each, in the order in which the names came first
  std::optional<Wall> started, ended;  // of the latest attempt
  std::string resources;               // what the latest attempt held, as JSON; "" when none
  std::string host;
  std::string devices;          // UUIDs of those that it held, as a JSON list; "" when none
  std::string digest, depends;  // of TaskKeyed; "" before
};

struct AttemptRecord {
  std::int64_t number = 0;  // 1, 2, … within the task
  Token token;
  Wall started;
  std::optional<Wall> ended;  // absent: still running, or its runner died; only of the latest
  std::optional<int> exit_code;
  std::string cause;
  std::string detail;  // a sentence for `why`; "" when there is nothing to add
  std::string resources, host, devices;
  std::int64_t cpu_ms = 0, peak_mem = 0;
  std::int64_t log_begin = 0, log_end = 0;  // where in the run's log file its frames lie
};

struct MetricRecord {
  Token token;
  std::string name;
  double value = 0;
  Wall at;
  std::int64_t sequence = 0;  // order within the run
};

/// What a task wrote, by the digest of all that went into it: the cache of all runs.
struct ResultRecord {
  std::string digest;
  std::string outputs;        // what they are is the caller's to say
  std::string origin;         // the task that wrote it: "count-2/split"
  Wall used;                  // when it was kept last
  std::int64_t sequence = 0;  // grows each time that one is kept
};

// Changes, applied in order, all of a batch or none.

struct AttemptStarted {  // the task must not be final; it becomes running. An attempt of it that
                         // still runs is ended first, with cause "superseded"
  TaskNumber task;
  Token token;  // greater than every earlier token of the run, else the batch is refused (stale)
  Wall at;
  std::string resources, host, devices = {};
};
struct AttemptPlaced {  // what its worker told of its start: ignored when the token is not the
                        // task's current running attempt
  TaskNumber task;
  Token token;
  std::string devices;
  std::optional<Wall> at{};  // since when it runs, where it was sent ahead of that
};
struct MetricSeen {  // ignored when the token is not the task's current running attempt
  TaskNumber task;
  Token token;
  std::string name;
  double value = 0;
  Wall at;
};
struct AttemptEnded {  // ignored (and counted as refused) when the token is not the task's current
                       // one or the task is not running: an attempt ends once
  TaskNumber task;
  Token token;
  Wall at;
  TaskState next = TaskState::done;  // done, failed; waiting: to be tried again; stopped;
                                     // else the batch is refused (invalid)
  std::optional<int> exit_code;
  std::string cause, detail;
  std::int64_t cpu_ms = 0, peak_mem = 0, log_begin = 0, log_end = 0;
};
struct TaskMoved {  // without an attempt, when the task is waiting or stopped; else it is left as
                    // is
  TaskNumber task;
  TaskState to = TaskState::waiting;  // any but running, which is refused (invalid)
};
struct TaskReopened {  // a final task becomes waiting, and its attempts so far are forgiven; one
                       // in another state is left as it is
  TaskNumber task;
};
struct TasksAdded {  // numbered on, waiting. exists: a label that the run has, or twice; invalid:
                     // as submit()
  std::vector<NewTask> tasks;
};
struct TaskKeyed {  // what the task's outputs depend on: told before it runs or is taken from the
                    // cache, and kept for `why`
  TaskNumber task;
  std::string digest;
  std::string depends;  // the text that it is the digest of
};
struct ResultKept {  // made, or used again: replaces an earlier one of this digest
  std::string digest, outputs, origin;
  Wall at;
};
struct RunMoved {
  RunState to = RunState::running;
  Wall at;  // becomes started (first time running) or ended (done, failed, stopped); a run that
            // waits or runs has no end
  std::string error;        // replaces the earlier one
  std::string result = {};  // so does this
};
struct RunStepped {
  Phase to = Phase::init;
  std::string alloc = {};  // replaces the earlier one
  std::int64_t tries = 0;
  std::optional<Wall> last_try = {};
};
struct RunSpecified {  // what is asked for from now on
  std::string spec_json;
};
using Change =
    std::variant<AttemptStarted, AttemptPlaced, MetricSeen, AttemptEnded, TaskMoved, TaskReopened,
                 TasksAdded, TaskKeyed, ResultKept, RunMoved, RunStepped, RunSpecified>;

/// For how long attempts that have ended held the same resources, in all.
struct Usage {
  std::string resources;  // as their attempts have it
  Duration held{};
};

struct Applied {
  std::int64_t refused = 0;  // completions whose token was stale
};

class Store {
 public:
  virtual ~Store() = default;

  /// Durable on return, with its name and number. exists: a label twice; invalid: no name, more
  /// than 1,000,000 tasks, a parameter of a task twice or not UTF-8.
  virtual Result<RunRecord> submit(const NewRun& run) = 0;

  /// A runner takes the run over: the epoch grows by one, running tasks of the earlier epoch become
  /// waiting again (their attempts get cause "runner lost" and an end), stopped ones too; final
  /// ones stay, and so does the run's state. Tokens of this epoch are epoch·2^32 + 1, …, and those
  /// of earlier ones are stale from now on, but for `alive`: attempts that outlived their runner
  /// stay running under their token, if it is still their task's. The caller makes sure (by a lock
  /// on the run) that no other runner lives.
  virtual Result<RunRecord> take_over(RunId run, std::int64_t runner_pid,
                                      std::int64_t runner_started_at, Wall now,
                                      std::span<const Token> alive) = 0;

  /// All or nothing, durable on return. stale: an AttemptStarted broke its rule; not_found: the
  /// run, or a task that is to be started or moved, is not there.
  virtual Result<Applied> apply(RunId run, std::span<const Change> changes) = 0;

  virtual Result<std::vector<RunRecord>> runs() = 0;  // oldest first, spec_json left empty
  virtual Result<RunRecord> find_run(std::string_view name) = 0;
  virtual Result<std::vector<TaskRecord>> tasks(RunId run) = 0;  // by number, with metrics
  virtual Result<TaskRecord> find_task(RunId run, std::string_view label) = 0;
  virtual Result<std::vector<AttemptRecord>> attempts(RunId run, TaskNumber task) = 0;
  virtual Result<std::vector<MetricRecord>> metrics(RunId run, TaskNumber task) = 0;  // in order
  virtual Result<std::vector<Usage>> usage(RunId run) = 0;  // by resources
  /// not_found, or removed with all its tasks; its name is never issued again.
  virtual Status remove(RunId run) = 0;

  virtual Result<ResultRecord> result(const std::string& digest) = 0;
  /// Those kept after this sequence number (0: all), in the order of theirs.
  virtual Result<std::vector<ResultRecord>> results(std::int64_t after) = 0;
  /// Forgets those that were not used since, but for what a run that is not done has as the digest
  /// of one of its tasks. Returns how many.
  virtual Result<std::int64_t> forget_results(Wall unused_since) = 0;
};

std::unique_ptr<Store> memory_store();
/// Creates (0600) or opens the database file and brings it to the current schema; its directory
/// exists. Waits up to a minute for other writers, then busy. full, denied, io; corrupt: damaged,
/// another program's or of a newer version; impossible: on a network file system.
Result<std::unique_ptr<Store>> sqlite_store(const std::string& file);

}  // namespace berth::store
