// A ProcessWorker is the worker that runs tasks as children of its own process. It reserves what
// each launch asks of its machine, starts the process in a process group of its own, holds it to
// its limits, reads its output and metrics, and reports how it ended.
//
// Ownership: it refers to the Env, the Machine and the Groups, which outlive it; its destructor
// kills what still runs. Threads: one. Failure: a launch that cannot start is an Ended message,
// never an error.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/exec/leftovers.h"
#include "berth/exec/metrics.h"
#include "berth/exec/unbegun.h"
#include "berth/exec/worker.h"
#include "berth/machine/devices/device_guard.h"
#include "berth/machine/groups/groups.h"
#include "berth/os/env.h"
#include "berth/os/loop.h"

namespace berth::exec {

class ProcessWorker final : public Worker {
 public:
  /// Every task gets `environment`, and over it what its launch says and what the placement adds.
  /// `ask_drivers` is the command that runs machine::watch_figures(), which reports what tasks use
  /// of their devices; where it is empty, the worker does not watch shares of devices.
  ProcessWorker(os::Env& env, machine::Machine& machine, machine::Groups& groups,
                Environment environment = {}, const std::vector<std::string>& ask_drivers = {});
  ProcessWorker(const ProcessWorker&) = delete;
  ProcessWorker& operator=(const ProcessWorker&) = delete;
  ~ProcessWorker() override;

  /// Says which adopted orphans without a mark are leftovers of tasks.
  void end_unmarked(Unmarked unmarked) { unmarked_ = unmarked; }

  /// Its owner says whether it may still act on what its processes did and on the time that has
  /// passed. It is asked first, each time; told no, the worker leaves everything as it is.
  void ask_first(std::function<bool()> may_act) { may_act_ = std::move(may_act); }

  /// The directory for files that tasks need while they run, such as a command that is too long for
  /// an argument; private to this user. Without one such a task does not start.
  void keep_files_in(std::string directory) { files_ = std::move(directory); }

  void send(const ToWorker& message) override;
  void set_reading(bool reads_output) override;
  void take_messages(std::vector<FromWorker>& messages) override;
  bool idle() const override { return processes_.empty() && waiting_.empty() && pending_.empty(); }
  bool queues() const override { return true; }
  /// Whether a launch waits for the end of another attempt.
  bool has_waiting() const { return !waiting_.empty(); }

 private:
  struct Process;
  struct Waiting {
    Launch launch;
    Mono until;
  };
  void step();
  void arm();
  bool waits(const Launch& launch) const;
  void start_waiting(Mono now);
  std::vector<Waiting>::iterator give_back(std::vector<Waiting>::iterator at, Cause cause);
  void launch(const Launch& launch);
  Result<os::Child> start(os::SpawnSpec& spec, Process& process, bool enforce);
  std::string guard(const Launch& launch, Process& process);
  void heed(const machine::GuardReport& report);
  void heed(const machine::OverShare& over, Process& process);
  Process* find(Token token);
  void end(Process& process, Cause verdict);
  void terminate(const Process& process);
  void drain(Process& process, Stream stream);
  void take(Process& process, MetricReader::Reading reading);
  void on_exit(Process& process);
  void end_group(Process& process);
  void adopt_orphans(const Process& process);
  void end_leftovers(Process& process);
  void end_all_leftovers();
  void close_output(Process& process);
  void conclude(Process& process);
  void check_deadlines(Process& process, Mono now);

  os::Env* env_;
  machine::Machine* machine_;
  machine::Groups* groups_;
  const Environment environment_;
  std::string files_;
  std::set<std::string> noted_;  // variables that were left out
  std::optional<machine::DeviceGuard> guard_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<Waiting> waiting_;  // launches behind others, in the order in which they came
  Unbegun unbegun_;
  std::vector<FromWorker> pending_;
  std::function<bool()> may_act_;
  bool reads_output_ = true;
  std::optional<bool> adopts_;  // orphans of tasks; nullopt: every task so far has a control group
  std::optional<Mono> reaps_at_;  // when orphans that have ended are reaped next
  Unmarked unmarked_ = Unmarked::kept;
  os::Timer due_{env_->loop(), [this] { step(); }};
};

}  // namespace berth::exec
