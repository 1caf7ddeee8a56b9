// An OwnWorker starts attempts on one alloc of a program's own cluster, and reads what its
// reporters tell. It keeps the attempts' time limits, and gives up what the cluster does not end.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "berth/exec/metrics.h"
#include "berth/exec/worker.h"
#include "berth/machine/machine.h"
#include "berth/os/loop.h"
#include "berth/os/wake.h"
#include "berth/run.h"

namespace berth {

class OwnWorker final : public exec::Worker {
 public:
  /// Of the alloc's `devices` each attempt has some to itself; nullptr: it has none that is known.
  /// An attempt that was to end at once is given up after `ends_within`; `gone` is called when the
  /// worker goes.
  OwnWorker(
      os::Env& env, Cluster& cluster, Alloc alloc,
      std::unique_ptr<machine::Machine> devices = nullptr,
      Duration ends_within = std::chrono::seconds(10), std::function<void()> gone = [] {});
  OwnWorker(const OwnWorker&) = delete;
  OwnWorker& operator=(const OwnWorker&) = delete;
  /// Ends what still runs, and waits for it for some seconds.
  ~OwnWorker() override;

  void send(const exec::ToWorker& message) override;
  /// What is told is taken at once, for nobody else keeps it.
  void set_reading(bool) override {}
  void take_messages(std::vector<exec::FromWorker>& messages) override;
  bool idle() const override { return running_.empty() && pending_.empty(); }
  std::optional<Error> lost() const override { return lost_; }

  /// Its alloc is about to be freed: what still runs there is ended, and not waited for.
  void let_go();

  /// What reporters have told and the worker has not taken. Any thread may add to it.
  struct Told;
  class Inbox;

 private:
  struct Running {
    exec::Launch launch;
    Attempt attempt;
    machine::Reservation part{};  // of devices_
    exec::MetricReader out{}, err{exec::Stream::err};
    exec::MetricNotes notes{};
    exec::Cause verdict = exec::Cause::ok;  // ours: time_limit or stopped
    std::optional<Mono> limit{}, kill_at{}, give_up_at{};
  };
  using Entry = std::map<Token, Running>::iterator;

  void launch(const exec::Launch& launch);
  void stop(Entry at, exec::Cause verdict);
  void stop_at_once(Entry at);
  void take_told();
  void take_output(Running& running, exec::Stream stream, std::string bytes);
  void take_metrics(Running& running, exec::MetricReader::Reading reading);
  void end(Entry at, const AttemptEnd& end);
  void give_up(Entry at);
  void look_at_times();
  void arm();

  os::Env& env_;
  Cluster& cluster_;
  Alloc alloc_;
  std::unique_ptr<machine::Machine> devices_;  // outlives the parts of it
  Duration ends_within_;
  std::function<void()> gone_;
  std::shared_ptr<Inbox> inbox_;
  std::map<Token, Running> running_;
  std::vector<exec::FromWorker> pending_;
  std::optional<Error> lost_;
  os::Poll told_;
  os::Timer due_{env_.loop(), [this] { look_at_times(); }};
};

}  // namespace berth
