// Which task runs where, and what follows when one ends: events in, effects out, nothing else. No
// clock, no file, no process: what it needs of the world stands in the event.
//
// Ready tasks stand in one queue by priority, then age. A worker takes the first that fit it. The
// first task that fits no worker now may be overtaken by smaller ones only so often
// (Options::overtakings); then one worker that can hold it is kept for it, and only what it leaves
// room for starts there. What failed on a worker is tried on another one, of another machine, where
// there is a choice.
//
// Threads: one. Failure: there is none; an event that does not fit (a stale token, an unknown
// worker) changes nothing. Cost: an event looks at each worker for each shape (distinct resources)
// that is ready, however many tasks have it.
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

/// A worker on one alloc, numbered by whoever made it, never twice.
using WorkerId = Id<struct WorkerTag>;

/// What is known of a task without an attempt here: `done` if it was, in an earlier run or by the
/// cache; `failed` for good.
enum class State : std::uint8_t { open, done, failed };

struct Task {
  TaskNumber number;  // counted from 1 without a gap; its age
  Resources resources;
  std::int64_t priority = 0;  // greater first; among equals the lower number
  int retries = 0;            // further attempts that it may still have
  State state = State::open;
  Token fence{};  // the last one recorded, plus one if its end is: none below may come back
  std::vector<TaskNumber> after{};  // lower numbers, so that there is no circle: done first
  // When those are done the task is not started but asked about (Unblocked), and then waits for
  // proceed(), settle() or wait_for(): to look it up in the cache, to unfold it into many, or, in a
  // runner that was started again, to see whether a worker comes back with it.
  bool asks = false;
};

/// How an attempt ended, as far as what follows depends on it. Memory that ran out is `failed`
/// where another attempt may get more or use less (limits only advised, neighbours on the machine,
/// a task that varies) and `permanent` where the same limit would end it the same way.
enum class Verdict : std::uint8_t {
  done,
  failed,     // an own fault (exit code, time limit): takes one retry of the task's budget
  permanent,  // would fail again the same way (no such program): no retry
  stopped,    // by us; the task may go on at a later resume
  /// What it ran on failed it: tried again, its budget untouched, up to
  /// Options::infrastructure_failures times in a row; sixteen times as often where each attempt
  /// went well for Options::long_attempt first, as on machines that are taken away now and then.
  infrastructure_failure,
  given_back,  // it waited behind another and never began: ready again, as if it had not been sent
};

/// What an earlier runner started on a worker and nobody has recorded the end of: it goes on under
/// its token. `ended` if it did so meanwhile.
struct Earlier {
  TaskNumber task;
  Token token;
  std::optional<Verdict> ended{};
};

/// A stealer that has nothing left to take is told to be freed; a primary worker stays.
enum class Kind : std::uint8_t { primary, stealer };

struct Worker {
  WorkerId id;
  Resources resources;
  Kind kind = Kind::primary;
  std::vector<Earlier> earlier{};  // by token
  std::int64_t machine = 0;        // greater than 0, that of others on the same; 0: one for itself
};

struct Options {
  std::int64_t epoch = 1;        // tokens are epoch·2^32 + 1, 2, …
  std::uint64_t seed = 0;        // of the jitter
  std::int64_t parallel = 0;     // attempts side by side at most; 0: as many as fit
  bool stop_on_failure = false;  // after the first task that failed for good nothing new starts
  Duration backoff_first = std::chrono::milliseconds(500);  // doubles with each one, ±50 %
  Duration backoff_most = std::chrono::seconds(60);
  int infrastructure_failures = 8;  // of a task, without any other end: about a minute of pauses
  Duration long_attempt = std::chrono::minutes(10);
  int overtakings = 16;  // starts that may pass a task before a worker is kept for it
  /// What failed on a machine starts there again only so long after it is ready: meanwhile another
  /// may be found for it.
  Duration seeks_elsewhere{};
};

// Effects.

struct StartAttempt {
  TaskNumber task;
  Token token;
  WorkerId worker;
  Token behind{};  // the attempt there whose room it takes when that has ended; 0: it has its own
};
struct CancelAttempt {
  Token token;
  WorkerId worker;
};
/// What the end of an attempt means for its task; or, `skipped` and without a token, that a task
/// will never run because `because` failed or was stopped.
struct TaskSettled {
  enum class To : std::uint8_t { done, failed, again, stopped, skipped };
  TaskNumber task;
  Token token;
  To to = To::done;
  Duration retry_in{};      // for `again`
  TaskNumber because = {};  // for `skipped`
};
/// What the task waited for is done (see Task::asks).
struct Unblocked {
  TaskNumber task;
};
/// The stealer is idle and closed: free its alloc, then tell left().
struct FreeWorker {
  WorkerId worker;
};
using Effect = std::variant<StartAttempt, CancelAttempt, TaskSettled, Unblocked, FreeWorker>;

/// A worker that runs empty for a task: nothing behind the task in the queue takes more of it than
/// `spare`, what it has beside the task and what was started there since.
struct Kept {
  TaskNumber task;
  WorkerId worker;
  Resources spare;
};

class Scheduler {
 public:
  explicit Scheduler(Options options);

  // Events. Effects are appended in the order in which they must be carried out.

  /// At any time; numbers go on from the last. A task after one that failed is skipped at once.
  void add(std::span<const Task> tasks, std::vector<Effect>& effects);
  /// The answers to Unblocked. `more` may have any numbers; a circle would wait for ever.
  void proceed(TaskNumber task, std::vector<Effect>& effects);
  void wait_for(TaskNumber task, std::span<const TaskNumber> more, std::vector<Effect>& effects);
  /// Without an attempt, while none runs: done (found in the cache) or failed. What comes after it
  /// has effects, the task itself none.
  void settle(TaskNumber task, State state, std::vector<Effect>& effects);

  /// What it runs of a task that has gone on without it is cancelled.
  void joined(const Worker& worker, Mono now, std::vector<Effect>& effects);
  /// Starts nothing more on it: its alloc is wanted back.
  void close(WorkerId worker);
  bool closed(WorkerId worker) const { return workers_.at(worker).closed; }
  /// Only of an idle worker.
  void left(WorkerId worker);
  /// It died, or its alloc expired: its tokens are stale, and its tasks ready again at once.
  void lost(WorkerId worker, Mono now, std::vector<Effect>& effects);

  void ended(Token token, Verdict verdict, Mono now, std::vector<Effect>& effects);
  void tick(Mono now, std::vector<Effect>& effects);
  /// Sends what is first in the queue and fits nowhere now to the worker ahead of time, behind
  /// attempts that run there and whose resources are the same. Nothing is sent ahead where the
  /// first failure is to end it all, or while a worker is kept for a task. What was sent ahead
  /// begins after halt() and close() all the same: it is brief.
  struct AheadPolicy {
    /// How many attempts may wait behind one for this task to be one more: 0 but for tasks so brief
    /// that the worker would idle while it waits to hear of the next.
    std::function<std::size_t(TaskNumber)> most;
    /// Whether what runs is about to end.
    std::function<bool(TaskNumber, Token)> ends_soon;
  };
  void send_ahead(WorkerId worker, const AheadPolicy& policy, std::vector<Effect>& effects);
  /// Whether the attempt waits behind another, as far as is known.
  bool waits(Token token) const {
    const auto found = attempts_.find(token);
    return found != attempts_.end() && found->second.behind.value > 0;
  }
  /// Cancels what runs and starts nothing more.
  void stop(std::vector<Effect>& effects);
  /// Starts nothing more; what runs may end.
  void halt() { halted_ = true; }

  /// What is ready and fits nowhere now, in the order of the queue: of each shape how many such
  /// could be used; at most `most` shapes. Empty when no further worker would help.
  std::vector<Requirements> needs(std::size_t most = 16) const;
  /// The first task of each of these.
  std::vector<TaskNumber> wanting(std::size_t most = 16) const;
  /// The machine on which a ready task is not to be started now: it failed there. 0: none.
  std::int64_t avoided(TaskNumber task) const;
  /// There is no other machine for it.
  void settle_for(TaskNumber task, std::vector<Effect>& effects);
  const std::optional<Kept>& kept() const { return kept_; }
  /// Whether the worker runs nothing, and what it has free.
  bool idle(WorkerId worker) const { return workers_.at(worker).running == 0; }
  const Resources& free(WorkerId worker) const { return workers_.at(worker).free; }
  /// Nothing runs, and nothing ever will again unless tasks are added.
  bool over() const { return attempts_.empty() && (stopping_ || open_ == 0 || halted_); }
  /// Nothing runs, is ready or will be tried again: only an answer (see Task::asks) can change
  /// that.
  bool quiet() const { return attempts_.empty() && heads_.empty() && delayed_.empty(); }
  /// When tick() has something to do.
  std::optional<Mono> next_tick() const;
  std::size_t running() const { return attempts_.size() - ahead_; }
  /// Ends that came with a token that was no longer, or never, good.
  std::int64_t stale() const { return stale_; }

  /// Aborts when an invariant is broken: the books of resources, attempts and queues agree. Debug
  /// builds call it after events, more rarely the more tasks there are.
  void check() const;

 private:
  // `gone`: failed, stopped or skipped.
  enum class Place : std::uint8_t { waiting, held, ready, delayed, running, done, gone };
  struct Entry {
    std::int64_t priority = 0;
    Mono due{};                    // while delayed
    Token fence{};                 // lower tokens are stale
    TaskNumber because{};          // once gone: itself, or the one it was skipped for
    std::int32_t shape = 0;        // in shapes_
    std::int32_t dependents = -1;  // the first of its list in edges_
    std::int32_t unmet = 0;        // how many it waits for
    int retries = 0;
    int pauses = 0;                   // backoffs so far
    int infrastructure_failures = 0;  // in a row, a brief attempt's as 16
    int overtaken = 0;                // how often, while it was the first that fitted nowhere
    Place place = Place::waiting;
    bool asks = false;
  };
  struct Edge {
    TaskNumber dependent;
    std::int32_t next = -1;
  };
  struct Attempt {
    TaskNumber task;
    WorkerId worker;
    Mono began;
    bool cancelled = false;
    bool beside = false;  // started on the kept worker, from its spare
    Token behind{};       // it waits there for the end of this one, and holds nothing; 0: it runs
  };
  struct WorkerBooks {
    Resources total, free;
    Kind kind = Kind::primary;
    std::int64_t running = 0;
    std::int64_t machine = 0;  // below 0: the worker's own
    bool closed = false;
  };
  using ReadyKey = std::pair<std::int64_t, std::int64_t>;  // -priority, number
  struct Shape {
    Resources resources;
    std::set<ReadyKey> ready;
    std::int64_t pending = 0;  // delayed or held: soon to be ready, as far as one can know
  };
  struct HashResources {
    std::size_t operator()(const Resources& resources) const;
  };
  using Workers = std::map<WorkerId, WorkerBooks>;

  // The books: schedule.cc.
  std::size_t index(TaskNumber task) const {
    BERTH_ASSERT(task.value >= 1 && task.value <= static_cast<std::int64_t>(tasks_.size()));
    return static_cast<std::size_t>(task.value - 1);
  }
  Entry& entry(TaskNumber task) { return tasks_[index(task)]; }
  const Entry& entry(TaskNumber task) const { return tasks_[index(task)]; }
  const Resources& resources(TaskNumber task) const {
    return shapes_[static_cast<std::size_t>(entry(task).shape)].resources;
  }
  ReadyKey key(TaskNumber task) const { return {-entry(task).priority, task.value}; }
  std::int32_t shape_of(const Resources& resources);
  void move(TaskNumber task, Place to);
  void set_ready(TaskNumber task, bool ready);
  void link(TaskNumber task, std::span<const TaskNumber> after, std::vector<Effect>& effects);
  void unblock(TaskNumber task, std::vector<Effect>& effects);
  void finish(TaskNumber task, std::vector<Effect>& effects);
  void give_up(TaskNumber task, std::vector<Effect>& effects);
  void skip(TaskNumber task, TaskNumber because, std::vector<Effect>& effects);
  TaskNumber release(std::map<Token, Attempt>::iterator found);
  void conclude(TaskNumber task, Token token, Verdict verdict, std::optional<Mono> now,
                std::vector<Effect>& effects);
  bool adopt(const Earlier& earlier, WorkerId worker, Mono now, std::vector<Effect>& effects);
  Duration backoff(TaskNumber task) const;

  // Who gets what: assign.cc.
  bool starting() const { return !stopping_ && !halted_; }
  bool room() const;
  void assign(std::vector<Effect>& effects);
  Workers::iterator choose(TaskNumber task);
  std::pair<TaskNumber, Workers::iterator> choose_of(const Shape& shape);
  bool held_by_some(TaskNumber task) const;
  Token next_token() { return {(options_.epoch << 32) + ++issued_}; }
  void occupy(TaskNumber task, Token token, WorkerId worker);
  void queue(TaskNumber task, Token token, WorkerId worker, Token behind);
  Token last_in_line(TaskNumber task, WorkerId worker) const;
  void overtake(TaskNumber head, const WorkerBooks& books);
  void keep(TaskNumber task);
  void dismiss(std::vector<Effect>& effects);
  void after_event(std::vector<Effect>& effects);

  void check_tasks() const;  // check.cc
  void check_queues() const;
  void check_workers() const;

  std::vector<Entry> tasks_;
  std::vector<Edge> edges_;
  std::vector<Shape> shapes_;
  std::unordered_map<Resources, std::int32_t, HashResources> shape_numbers_;
  Options options_;
  std::set<ReadyKey> heads_;  // the first of each shape that has any ready
  std::set<std::pair<Mono, TaskNumber>> delayed_;
  std::map<Token, Attempt> attempts_;
  Workers workers_;
  struct Failure {
    std::int64_t machine = 0;
    Mono avoided_until{};
  };
  std::map<TaskNumber, Failure> failed_on_;  // tasks that are tried again: where they failed last
  std::optional<Kept> kept_;
  Mono now_{};  // as the last event told it
  std::int64_t issued_ = 0;
  std::int64_t open_ = 0;
  std::size_t ahead_ = 0;  // attempts that wait behind others
  std::int64_t stale_ = 0;
  bool stopping_ = false;  // asked to stop
  bool halted_ = false;    // a failure ended it
};

}  // namespace berth::schedule
