// The scheduler decides which task runs on which worker, and what follows when an attempt ends. It
// maps events to effects: it reads no clock, file or process, so the caller passes the time with
// each event and carries out the effects in the order given.
//
// Ready tasks wait in one queue, ordered by priority and then by age. Each worker gets the first
// tasks that fit into its free resources. Smaller tasks may backfill past the first task that fits
// nowhere now, at most Options::backfill_limit times; then the scheduler holds one worker for that
// task (BackfillHold), and only tasks that do not delay it start there. A task that failed on a
// machine is tried again on another one where there is a choice.
//
// Tasks do not depend on each other here: the graph of a flow knows what waits for what, and a
// gated task starts only after proceed().
//
// Threads: one. Errors: none; an event with a stale token changes nothing and is counted. Cost: an
// event looks at each worker once for each resource class (distinct resources) with ready tasks,
// however many tasks there are in it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "berth/base/ids.h"
#include "berth/base/result.h"
#include "berth/base/time.h"
#include "berth/resource/resources.h"

namespace berth::schedule {

/// A worker on one alloc. The caller numbers workers and uses no number twice.
using WorkerId = Id<struct WorkerTag>;

struct Task {
  TaskNumber number;  ///< Numbers count from 1 without a gap; a lower number is an older task.
  Resources resources;
  std::int64_t priority = 0;  ///< Tasks of greater priority start first.
  int retries = 0;            ///< How many further attempts its own failures may take.
  bool settled = false;  ///< The task needs no attempt: it ended in an earlier run or was cached.
  Token fence{};         ///< Attempts of an earlier runner with lower tokens are stale.
  /// The task starts only after proceed(). Meanwhile it may be settled without an attempt, or a
  /// worker may come back with an attempt of it.
  bool gated = false;
  bool tolerated = false;  ///< Its failure is none that Options::stop_on_failure means.
};

/// How an attempt ended. Running out of memory is `failed` where another attempt may get more or
/// use less (advisory limits, neighbours on the machine, a task that varies) and `permanent` where
/// the same limit would end the attempt in the same way.
enum class Verdict : std::uint8_t {
  done,
  failed,     ///< A fault of its own (exit code, time limit) takes one of the task's retries.
  permanent,  ///< Another attempt would fail in the same way (no such program): no retry.
  stopped,    ///< We stopped it; a later resume may go on with the task.
  /// The machine or the worker failed. The task is tried again and keeps its retries, up to
  /// Options::infrastructure_failures times in a row, or sixteen times as often if each attempt
  /// lasted Options::long_attempt, as on machines that are preempted now and then.
  infrastructure_failure,
  given_back,  ///< It waited behind another attempt and never began. The task is ready again.
};

/// An attempt that an earlier runner started on a worker and whose end is not recorded. The attempt
/// goes on under its token; `ended` is set if it has ended meanwhile.
struct Earlier {
  TaskNumber task;
  Token token;
  std::optional<Verdict> ended{};
  /// The caller has cancelled it, as it counts for nothing: its task waits for its end.
  bool ends = false;
};

/// The scheduler closes an idle stealer once no task is left for it; a primary worker stays open.
enum class Kind : std::uint8_t { primary, stealer };

struct Worker {
  WorkerId id;
  Resources resources;
  Kind kind = Kind::primary;
  std::vector<Earlier> earlier{};  ///< Attempts that the worker comes with, ordered by token.
  std::int64_t machine = 0;  ///< Workers on one machine share a number above 0; 0: its own machine.
};

struct Options {
  std::int64_t epoch = 1;             ///< Tokens are epoch·2^32 + 1, 2, …
  std::uint64_t seed = 0;             ///< Seeds the jitter of the backoff.
  std::int64_t parallel = 0;          ///< How many attempts may run at once; 0: as many as fit.
  bool stop_on_failure = false;       ///< After more failures than allowed, no other task starts.
  std::int64_t allowed_failures = 0;  ///< Failed tasks that do not count for stop_on_failure.
  Duration backoff_first = std::chrono::milliseconds(500);  ///< Doubles with each retry, ±50 %.
  Duration backoff_most = std::chrono::seconds(60);
  int infrastructure_failures = 8;  ///< In a row for one task: about a minute of backoff.
  Duration long_attempt = std::chrono::minutes(10);
  int backfill_limit = 16;  ///< Starts that may pass the first task before it gets a BackfillHold.
  /// How long a task that is ready again avoids the machine on which it failed, so that the caller
  /// can look for a worker on another one.
  Duration seeks_elsewhere{};
};

// Effects.

struct StartAttempt {
  TaskNumber task;
  Token token;
  WorkerId worker;
  Token
      behind{};  ///< The attempt takes the room of this one once that has ended; 0: it has its own.
};
struct CancelAttempt {
  Token token;
  WorkerId worker;
};
/// What the end of an attempt means for its task.
struct TaskSettled {
  enum class To : std::uint8_t { done, failed, again, stopped };
  TaskNumber task;
  Token token;
  To to = To::done;
  Duration retry_in{};  ///< For `again`.
};
using Effect = std::variant<StartAttempt, CancelAttempt, TaskSettled>;

/// The worker that runs empty for a large task. Tasks behind the large one in the queue may take no
/// more of the worker than `spare`: what it has beyond the large task, less what has backfilled it.
struct BackfillHold {
  TaskNumber task;
  WorkerId worker;
  Resources spare;
};

class Scheduler {
 public:
  explicit Scheduler(Options options);

  // Events. Each appends its effects in the order in which they must be carried out.

  /// Adds tasks at any time; their numbers go on from the last one.
  void add(std::span<const Task> tasks, std::vector<Effect>& effects);
  /// Makes a gated task ready.
  void proceed(TaskNumber task, std::vector<Effect>& effects);
  /// The task, which does not run, asks for these resources from now on.
  void resize(TaskNumber task, const Resources& resources);
  /// The task needs no attempt (it was found in the cache). A task that runs is left alone.
  void settle(TaskNumber task, std::vector<Effect>& effects);

  /// Adds a worker. Attempts that it comes with go on, unless their task went on without them:
  /// then they are cancelled.
  void joined(const Worker& worker, Mono now, std::vector<Effect>& effects);
  /// Between the two nothing starts: what a worker of an earlier runner comes with must not be
  /// started on another one that joined before it.
  void begin_recovery() { recovering_ = true; }
  void end_recovery(Mono now, std::vector<Effect>& effects);
  /// Starts nothing more on the worker. The caller closes a worker whose alloc is wanted back; the
  /// scheduler closes a stealer that is idle while no task is left for it.
  void close(WorkerId worker);
  bool closed(WorkerId worker) const { return workers_.at(worker).closed; }
  /// Removes a worker, which must be idle: of a lost one the caller first reports its attempts
  /// ended.
  void left(WorkerId worker);

  void ended(Token token, Verdict verdict, Mono now, std::vector<Effect>& effects);
  void tick(Mono now, std::vector<Effect>& effects);
  /// Decides what may be sent to a worker ahead of time.
  struct AheadPolicy {
    /// How many attempts may wait behind one for this task to join them. 0 for all but tasks that
    /// are so brief that the worker would idle while it waits for the next one.
    std::function<std::size_t(TaskNumber)> most;
    /// Whether the running attempt is about to end.
    std::function<bool(TaskNumber, Token)> ends_soon;
  };
  /// Sends the first tasks of the queue, which fit nowhere now, to the worker ahead of time: each
  /// waits behind an attempt of the same resource class that runs there. Nothing is sent ahead with
  /// Options::stop_on_failure or during a BackfillHold. What was sent ahead still begins after
  /// halt() and close(), since it is brief.
  void send_ahead(WorkerId worker, const AheadPolicy& policy, std::vector<Effect>& effects);
  /// Whether the attempt waits behind another one, as far as the scheduler knows.
  bool waits(Token token) const {
    const auto found = attempts_.find(token);
    return found != attempts_.end() && found->second.behind.value > 0;
  }
  /// Cancels what runs and starts nothing more.
  void stop(std::vector<Effect>& effects);
  /// Starts nothing more; what runs may end.
  void halt() { halted_ = true; }

  /// The resources that ready tasks wait for, in the order of the queue: at most `most` resource
  /// classes, each with the number of its tasks that could run. Empty when no worker would help.
  std::vector<Requirements> needs(std::size_t most = 16) const;
  /// The first task of each of these.
  std::vector<TaskNumber> wanting(std::size_t most = 16) const;
  /// The machine that a ready task avoids for now because it failed there; 0: none.
  std::int64_t avoided(TaskNumber task) const;
  /// The task avoids no machine any more: the caller found no other one.
  void settle_for(TaskNumber task, std::vector<Effect>& effects);
  const std::optional<BackfillHold>& backfill_hold() const { return hold_; }
  /// Whether the worker has no attempt.
  bool idle(WorkerId worker) const { return workers_.at(worker).running == 0; }
  const Resources& free(WorkerId worker) const { return workers_.at(worker).free; }
  /// Nothing runs, and nothing will run unless tasks are added.
  bool over() const { return attempts_.empty() && (stopping_ || open_ == 0 || halted_); }
  /// Nothing runs, is ready or will be tried again: only proceed() or add() can change that.
  bool quiet() const { return waits_only_for(0); }
  /// So many attempts run, and nothing will start before one of them ends.
  bool waits_only_for(std::size_t attempts) const {
    return attempts_.size() == attempts && heads_.empty() && delayed_.empty();
  }
  /// When the next tick() is due; nullopt if none is.
  std::optional<Mono> next_tick() const;
  /// The number of attempts that run; those that wait behind others do not count.
  std::size_t running() const { return attempts_.size() - ahead_; }
  /// The number of ends that came with a stale or unknown token.
  std::int64_t stale() const { return stale_; }

  /// Recounts resources, attempts and queues and aborts if they disagree. Builds with BERTH_CHECKED
  /// call it after events, more rarely the more tasks there are.
  void check() const;

 private:
  enum class Place : std::uint8_t { gated, ready, delayed, running, settled };
  struct Entry {
    std::int64_t priority = 0;
    Mono due{};     // while delayed
    Token fence{};  // lower tokens are stale
    std::int32_t resource_class = 0;
    int retries = 0;
    int pauses = 0;                   // backoffs so far
    int infrastructure_failures = 0;  // in a row; one of a brief attempt counts as 16
    int passed = 0;                   // how often others backfilled past it
    Place place = Place::settled;
    bool tolerated = false;
  };
  struct Attempt {
    TaskNumber task;
    WorkerId worker;
    Mono began;
    bool cancelled = false;
    bool backfills = false;  // took its resources from the spare ones of the hold
    Token behind{};          // waits for the end of this attempt, and holds nothing; 0: it runs
  };
  struct WorkerBooks {
    Resources total, free;
    Kind kind = Kind::primary;
    std::int64_t running = 0;
    std::int64_t machine = 0;  // below 0: the worker's own
    bool closed = false;
  };
  using ReadyKey = std::pair<std::int64_t, std::int64_t>;  // -priority, number
  struct ResourceClass {
    Resources resources;
    std::set<ReadyKey> ready;
    std::int64_t pending = 0;  // delayed or gated: they may soon be ready
  };
  struct HashResources {
    std::size_t operator()(const Resources& resources) const;
  };
  using Workers = std::map<WorkerId, WorkerBooks>;

  // Bookkeeping: schedule.cc.
  std::size_t index(TaskNumber task) const {
    BERTH_ASSERT(task.value >= 1 && task.value <= static_cast<std::int64_t>(tasks_.size()));
    return static_cast<std::size_t>(task.value - 1);
  }
  Entry& entry(TaskNumber task) { return tasks_[index(task)]; }
  const Entry& entry(TaskNumber task) const { return tasks_[index(task)]; }
  const ResourceClass& class_of(TaskNumber task) const {
    return classes_[static_cast<std::size_t>(entry(task).resource_class)];
  }
  ResourceClass& class_of(TaskNumber task) {
    return classes_[static_cast<std::size_t>(entry(task).resource_class)];
  }
  const Resources& resources(TaskNumber task) const { return class_of(task).resources; }
  ReadyKey key(TaskNumber task) const { return {-entry(task).priority, task.value}; }
  std::int32_t class_number(const Resources& resources);
  void move(TaskNumber task, Place to);
  void set_ready(TaskNumber task, bool ready);
  TaskNumber release(std::map<Token, Attempt>::iterator found);
  void conclude(TaskNumber task, Token token, Verdict verdict, Mono now,
                std::vector<Effect>& effects);
  bool adopt(const Earlier& earlier, WorkerId worker, Mono now, std::vector<Effect>& effects);
  Duration backoff(TaskNumber task) const;

  // Which task starts on which worker: assign.cc.
  bool starting() const { return !stopping_ && !halted_; }
  bool room() const;
  void assign(std::vector<Effect>& effects);
  Workers::iterator choose(TaskNumber task);
  std::pair<TaskNumber, Workers::iterator> choose_of(const ResourceClass& of);
  bool some_worker_could_hold(TaskNumber task) const;
  Token next_token() { return {(options_.epoch << 32) + ++issued_}; }
  void occupy(TaskNumber task, Token token, WorkerId worker);
  void queue(TaskNumber task, Token token, WorkerId worker, Token behind);
  Token last_in_line(TaskNumber task, WorkerId worker) const;
  void count_backfill(TaskNumber head, const WorkerBooks& books);
  void hold_worker_for(TaskNumber task);
  void close_idle_stealers();
  void after_event(std::vector<Effect>& effects);

  void check_tasks() const;  // check.cc
  void check_queues() const;
  void check_workers() const;

  std::vector<Entry> tasks_;
  std::vector<ResourceClass> classes_;
  std::unordered_map<Resources, std::int32_t, HashResources> class_numbers_;
  Options options_;
  std::set<ReadyKey> heads_;  // the first ready task of each resource class
  std::set<std::pair<Mono, TaskNumber>> delayed_;
  std::map<Token, Attempt> attempts_;
  Workers workers_;
  struct Failure {
    std::int64_t machine = 0;
    Mono avoided_until{};
  };
  std::map<TaskNumber, Failure> failed_on_;  // tasks that are tried again: where they failed last
  std::optional<BackfillHold> hold_;
  Mono now_{};  // the time of the last event
  std::int64_t issued_ = 0;
  std::int64_t open_ = 0;
  std::size_t ahead_ = 0;  // attempts that wait behind others
  std::int64_t stale_ = 0;
  bool stopping_ = false;      // asked to stop
  std::int64_t failures_ = 0;  // failed tasks that count for stop_on_failure
  bool halted_ = false;        // a failure ended it
  bool recovering_ = false;
};

}  // namespace berth::schedule
