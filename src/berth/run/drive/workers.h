// Workers are the workers that a run has: each works on one alloc, in this process, in an agent of
// this machine, on a machine elsewhere, or by asking a person. The loop waits for all of them at
// once and takes their messages; it is told here which worker an attempt belongs to.
//
// Ownership: it owns the workers; a slot's address holds until take() or take_lost(). It refers to
// the ActiveRun. Threads: one. Failure: no call fails; a worker that is gone is lost, and the loop
// reaps it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/agent/client/agent_client.h"
#include "berth/machine/groups/groups.h"
#include "berth/run/drive/leases.h"

namespace berth::run {

/// One alloc and the worker on it.
struct WorkerSlot {
  schedule::WorkerId id;
  Lease lease;
  std::unique_ptr<exec::Worker> worker{};
  bool apart = false;  // not this process: it keeps what it reported until that is durable
  std::string agent_directory{};  // of an agent on this machine
  std::optional<Error> lost{};    // why nothing more comes from it
  /// The worker, while an earlier runner's agent has not answered this one, and why it may not.
  agent::AgentClient* silent = nullptr;
  std::string silence{};                     // stays when it has answered: it gets no new tasks
  std::vector<exec::FromWorker> deferred{};  // messages that came while the store was waited for
};

class Workers {
 public:
  Workers(ActiveRun& run, Context& context) : run_(run), context_(context), groups_(run.env) {}

  /// Starts a worker on an alloc of the source.
  WorkerSlot& assign(Lease lease, const Source& source);
  /// Takes over an agent on this machine or elsewhere that an earlier runner left.
  WorkerSlot& attach(std::unique_ptr<agent::AgentClient> agent, Lease lease, std::string directory);
  /// An id that no worker has or had.
  schedule::WorkerId next_id() { return {++made_}; }

  auto begin() { return slots_.begin(); }
  auto end() { return slots_.end(); }
  std::int64_t count() const { return std::ssize(slots_); }
  WorkerSlot* find(schedule::WorkerId id);
  void send(schedule::WorkerId id, const exec::ToWorker& message);
  /// The first worker on an alloc of the main source; nullptr: none.
  WorkerSlot* primary();
  Holdings holdings(bool is_running) const;
  /// What a worker does besides tasks that takes long; "" mostly.
  std::string doing() const;

  /// Whether the tasks' output is read; else it is left in their pipes.
  void set_reading(bool reads_output);
  /// Takes each worker's messages to its slot's `deferred`.
  void collect();
  /// All that came since it was called last, in the order of the workers.
  std::vector<exec::FromWorker> take_messages();
  bool has_messages() const;
  /// When a lease is to be renewed, or nothing new is begun on an alloc.
  std::optional<Mono> deadline() const;

  /// Those that are lost: nothing more starts there.
  void close_lost();
  /// The slots of those that are lost, for the loop to reap.
  std::vector<std::unique_ptr<WorkerSlot>> take_lost();
  /// The chosen slots, for the loop to free. Choosing changes nothing: what ends a worker may turn
  /// the loop, whose callbacks look at the slots.
  std::vector<std::unique_ptr<WorkerSlot>> take(
      const std::function<bool(const WorkerSlot&)>& chosen);

 private:
  std::unique_ptr<exec::Worker> start(WorkerSlot& slot, const Source& source);

  ActiveRun& run_;
  Context& context_;
  machine::Groups groups_;
  std::vector<std::unique_ptr<WorkerSlot>> slots_;
  std::int64_t made_ = 0;
};

agent::RunnerSide runner_side(const Context& context, std::int64_t epoch);

}  // namespace berth::run
