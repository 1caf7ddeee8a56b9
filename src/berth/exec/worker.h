// A Worker runs tasks on one alloc, and this is how a runner sees it, wherever the worker is: in
// the runner's own process (ProcessWorker), in an agent on this machine that outlives the runner
// (agent::AgentClient), on another machine (remote::RemoteWorker), or with a person who runs the
// tasks by hand (run::PassiveWorker).
//
// A worker answers each Launch with Started, then any Output, Metric and Notice, then one Ended, in
// this order; or with Ended alone, where the task could not be started. It reports nothing unasked,
// and nothing after lost().
//
// Ownership: the runner owns the worker. Threads: one. Failure: no call fails or blocks. A worker
// reports what it cannot do as an Ended message; a worker that is gone is lost(), and then the
// runner has to run its tasks on another one.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "berth/exec/messages.h"
#include "berth/os/env.h"

namespace berth::exec {

class Worker {
 public:
  virtual ~Worker() = default;

  /// Tells the worker what to do; the answers are messages that take_messages() returns later.
  virtual void send(const ToWorker& message) = 0;

  /// Says whether the worker reads the tasks' output; at first it does. A worker that does not
  /// leaves the output in the tasks' pipes, but what it has read already still comes.
  virtual void set_reading(bool reads_output) = 0;
  /// Moves the messages that have come since the last call to the end of `messages`.
  virtual void take_messages(std::vector<FromWorker>& messages) = 0;
  /// The number, in the worker's own journal, of the last message taken; 0 where it has none.
  virtual std::int64_t last_taken() const { return 0; }
  /// The worker calls `wake` when it has become ready or is lost, and when there are messages to
  /// take: in a turn of the loop or within send(). A caller that sets no `wake` takes messages
  /// after each turn of the loop; a send() that made some makes the next turn return at once.
  void on_messages(std::function<void()> wake) { wake_ = std::move(wake); }

  /// Whether the worker lets a launch wait for the end of another one (Launch::behind).
  virtual bool queues() const { return false; }
  /// Whether every launch has ended, and its Ended message was taken.
  virtual bool idle() const = 0;
  /// The caller has made durable all messages that it took, so the worker need not keep them.
  virtual void acknowledge() {}
  /// The caller needs the worker no longer, once it is idle and acknowledged.
  virtual void finish() {}
  /// As finish(), but the worker keeps what it holds of its machine for `time`, where it can.
  virtual void retain(Duration /*time*/) { finish(); }
  /// What the worker does besides tasks that takes long, for people ("data.bin to box: 35 % of 1.2
  /// GiB"); "" when there is nothing.
  virtual std::string doing() const { return ""; }
  /// Files that tasks wrote on another machine, that were not copied back, and that are deleted
  /// with the worker; nullopt while they are being counted. An idle worker has counted them.
  struct DeletedFiles {
    std::int64_t files = 0, bytes = 0;
  };
  virtual std::optional<DeletedFiles> deleted_files() const { return DeletedFiles{}; }
  /// Why the worker cannot be reached now, though it tries to be; nullopt while it can be.
  virtual std::optional<Error> cut() const { return std::nullopt; }
  /// Why the worker will never report anything again; nullopt while it lives.
  virtual std::optional<Error> lost() const { return std::nullopt; }

 protected:
  std::function<void()> wake_;
};

}  // namespace berth::exec
