// A worker as a runner sees it, wherever it is: in the runner's own process (exec::Worker) or in
// one that outlives the runner (agent::Link).
//
// For each launch come Started, any Output, Metric and Notice, and Ended, in this order, or Ended
// alone; and Ended once. Nothing comes unasked, and nothing after lost().
//
// Threads: one. Failure: no call fails or blocks. What a worker cannot do is an Ended message; a
// worker that is gone is lost(), and then its tasks have to be run elsewhere.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "berth/exec/messages.h"
#include "berth/os/env.h"

namespace berth::exec {

class Workplace {
 public:
  virtual ~Workplace() = default;

  virtual void tell(const ToWorker& message) = 0;

  /// Whether the tasks' output is read; else it is left in their pipes, but for what is on its way:
  /// whoever takes it has enough. At first it is.
  virtual void set_reading(bool reads_output) = 0;
  /// Moves everything that has happened since to the end of `messages`.
  virtual void take_messages(std::vector<FromWorker>& messages) = 0;
  /// `wake` is called when it has become ready or is lost, and when there are messages to take: in
  /// a turn of the loop or within tell(). Without it they are to be taken after each turn of the
  /// loop, and tell() makes the next one be at once where it made some.
  void on_messages(std::function<void()> wake) { wake_ = std::move(wake); }

  /// A launch may name another that it waits behind (Launch::behind).
  virtual bool queues() const { return false; }
  /// Everything that was launched has ended, and its end was handed out.
  virtual bool idle() const = 0;
  /// All that was handed out is durable: the worker need not keep it any longer.
  virtual void acknowledge() {}
  /// It is needed no longer, once idle and acknowledged.
  virtual void finish() {}
  /// As finish(), but what it holds of its machine is kept for so long, where that is possible.
  virtual void retain(Duration) { finish(); }
  /// What it does besides tasks that takes long, for people: "data.bin to box: 35 % of 1.2 GiB".
  virtual std::string doing() const { return ""; }
  /// Why it cannot be reached now, while that is tried again.
  virtual std::optional<Error> cut() const { return std::nullopt; }
  /// Why nothing will come any more; nullopt while it lives.
  virtual std::optional<Error> lost() const { return std::nullopt; }

 protected:
  std::function<void()> wake_;
};

}  // namespace berth::exec
