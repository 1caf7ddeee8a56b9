// Which task runs where, and what follows when one ends: events in, effects out, nothing else. No
// clock, no file, no process: what it needs of the world stands in the event.
//
// Threads: one. Failure: there is none; an event that does not fit (a stale token, an unknown
// worker) changes nothing and gives no effect.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "berth/base/ids.h"
#include "berth/base/result.h"
#include "berth/base/time.h"
#include "berth/resource/resources.h"

namespace berth::schedule {

/// A worker on one alloc, numbered by whoever made it.
using WorkerId = Id<struct WorkerTag>;

struct Task {
  TaskNumber number;
  Resources resources;
  std::int64_t priority = 0;  // greater first; among equals the lower number
  int retries = 0;            // further attempts that it may still have
  bool open = true;           // false: settled before (done or failed); never started again
};

struct Options {
  std::int64_t epoch = 1;        // tokens are epoch·2^32 + 1, 2, …
  std::uint64_t seed = 0;        // of the jitter
  std::int64_t parallel = 0;     // attempts side by side at most; 0: as many as fit
  bool stop_on_failure = false;  // after the first task that failed for good nothing new starts
  Duration backoff_first = std::chrono::milliseconds(500);  // doubles with each attempt, ±50 %
  Duration backoff_most = std::chrono::seconds(60);
};

/// How an attempt ended, as far as what follows depends on it.
enum class Verdict : std::uint8_t {
  done,
  failed,         // an own fault: takes one retry of the task's budget
  hopeless,       // would fail again the same way (no such program): no retry
  stopped,        // by us; the task may go on at a later resume
  not_its_fault,  // what it ran on failed it: tried again, its budget untouched
};

// Effects.

struct StartAttempt {
  TaskNumber task;
  Token token;
  WorkerId worker;
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
  Duration retry_in{};  // for `again`
};
using Effect = std::variant<StartAttempt, CancelAttempt, TaskSettled>;

class Scheduler {
 public:
  Scheduler(std::vector<Task> tasks, Options options);

  // Events. Effects are appended in the order in which they must be carried out.
  void joined(WorkerId worker, const Resources& resources, Mono now, std::vector<Effect>& effects);
  /// Starts nothing more on it: its alloc is wanted back.
  void close(WorkerId worker);
  bool closed(WorkerId worker) const { return workers_.at(worker).closed; }
  /// Only of an idle worker.
  void left(WorkerId worker);
  void ended(Token token, Verdict verdict, Mono now, std::vector<Effect>& effects);
  void tick(Mono now, std::vector<Effect>& effects);
  /// Cancels what runs and starts nothing more.
  void stop(std::vector<Effect>& effects);

  /// What is ready and fits nowhere now: the first ready task's resources, and how many such could
  /// be used. nullopt when no further worker would help.
  std::optional<Requirements> need() const;
  /// Whether the worker runs nothing.
  bool idle(WorkerId worker) const;
  /// Nothing runs, and nothing ever will again.
  bool over() const { return attempts_.empty() && (stopping_ || open_ == 0 || halted_); }
  /// When tick() has something to do.
  std::optional<Mono> next_tick() const;
  std::size_t running() const { return attempts_.size(); }

  /// Aborts when an invariant is broken: the books of resources, attempts and queues agree.
  void check() const;

 private:
  enum class Place : std::uint8_t { ready, delayed, running, settled };
  struct Entry {
    Task task;
    Place place = Place::ready;
    int attempts = 0;
  };
  struct Attempt {
    TaskNumber task;
    WorkerId worker;
    bool cancelled = false;
  };
  struct WorkerBooks {
    Resources total, free;
    std::int64_t running = 0;
    bool closed = false;
  };
  using ReadyKey = std::pair<std::int64_t, std::int64_t>;  // -priority, number

  Entry& entry(TaskNumber task) { return tasks_[static_cast<std::size_t>(task.value - 1)]; }
  void assign(std::vector<Effect>& effects);
  void start(Entry& entry, WorkerId worker, WorkerBooks& books, std::vector<Effect>& effects);
  bool room() const;
  Duration backoff(const Entry& entry) const;

  std::vector<Entry> tasks_;  // [number - 1]
  Options options_;
  std::set<ReadyKey> ready_;
  std::set<std::pair<Mono, TaskNumber>> delayed_;
  std::map<Token, Attempt> attempts_;
  std::map<WorkerId, WorkerBooks> workers_;
  std::int64_t issued_ = 0;
  std::int64_t open_ = 0;
  bool stopping_ = false;  // asked to stop
  bool halted_ = false;    // a failure ended it
};

}  // namespace berth::schedule
