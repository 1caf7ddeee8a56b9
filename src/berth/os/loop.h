// The event loop of a process: descriptors, timers, child ends and work done on other threads are
// callbacks of it. Whoever needs one registers with Env::loop(); the loop waits through
// Env::wait(), so that a fake world drives it too.
//
//   Poll answers_{env.loop(), [this] { read(); }};   // answers_.watch(fd.number());
//   Timer limit_{env.loop(), [this] { give_up(); }}; // limit_.set(env.now() + kAnswersWithin);
//   while (!done) BERTH_TRY(env.loop().turn());
//
// Ownership: a Poll or a Timer belongs to whoever made it, stays where it was made, and withdraws
// itself when it goes; the loop outlives both. Threads: one, that of its Env. Failure: turn()
// returns the error of Env::wait(). A callback may register, change and end any registration, its
// own too; it does not call turn().
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "berth/base/result.h"
#include "berth/base/time.h"

namespace berth::os {

class Env;
struct Watch;
class Poll;
class StopSignal;
class Timer;

class Loop {
 public:
  explicit Loop(Env& env);
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop();

  /// Waits until a descriptor is ready, a timer is due, a stop signal came, or `until`, and calls
  /// what that concerns: stop signals first, then the descriptors in the order in which they were
  /// registered, then the timers that are due in the order of their times.
  Status turn(std::optional<Mono> until = std::nullopt);

  /// For the fake world: what the next turn would wait for.
  std::optional<Mono> next_timer() const {
    return timers_.empty() ? std::nullopt : std::optional(timers_.begin()->first);
  }
  std::span<Watch> watches();

 private:
  friend class Poll;
  friend class StopSignal;
  friend class Timer;
  void call_stopped();
  void call_ready();
  void call_due();
  void drop_withdrawn();

  Env& env_;
  std::vector<Poll*> polls_;    // nullptr: withdrawn since the last turn began
  std::vector<Watch> watches_;  // one for each of them
  std::multimap<Mono, Timer*> timers_;
  std::vector<StopSignal*> stop_signals_;
  int stops_ = 0;  // how many were told
  bool turning_ = false;
};

/// Calls back when a descriptor is ready, again and again while it is.
class Poll {
 public:
  enum class For : bool { reading, writing };
  Poll(Loop& loop, std::function<void()> ready);
  Poll(const Poll&) = delete;
  Poll& operator=(const Poll&) = delete;
  ~Poll();

  /// From now on it is about this descriptor, and no other; below 0: about none.
  void watch(int fd, For what = For::reading);
  void stop() { watch(-1); }

 private:
  friend class Loop;
  Loop& loop_;
  std::size_t at_;  // in the loop's lists
  std::function<void()> ready_;
};

/// Calls back when a stop signal has come (Env::stop_signals), each time.
class StopSignal {
 public:
  StopSignal(Loop& loop, std::function<void()> stop);
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();

 private:
  friend class Loop;
  Loop& loop_;
  std::function<void()> stop_;
};

/// Calls back once, when its time has come.
class Timer {
 public:
  Timer(Loop& loop, std::function<void()> due) : loop_(loop), due_(std::move(due)) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { set(std::nullopt); }

  /// Replaces the time that was set before; nullopt: it does not call.
  void set(std::optional<Mono> at);
  /// Brings the time forward, where it is later or none is set; nullopt changes nothing. Who looks
  /// at what is due whenever this calls may be called too early, never too late.
  void no_later_than(std::optional<Mono> at) {
    if (at && (!at_ || *at < *at_)) set(at);
  }
  std::optional<Mono> at() const { return at_; }

 private:
  friend class Loop;
  Loop& loop_;
  std::function<void()> due_;
  std::optional<Mono> at_;
  std::multimap<Mono, Timer*>::iterator entry_{};
};

}  // namespace berth::os
