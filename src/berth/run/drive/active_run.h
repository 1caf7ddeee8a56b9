// ActiveRun is what the parts of a runner (leases, workers, attempts, the recorder and the loop)
// share of the run that they drive: the record, its tasks, the scheduler, and the effects of the
// scheduler that nobody has carried out yet.
//
// Ownership: the loop owns it, and it outlives the parts, which hold references. Threads: one.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "berth/cluster/cluster.h"
#include "berth/os/env.h"
#include "berth/run/drive/attempt_history.h"
#include "berth/run/drive/runner.h"
#include "berth/run/drive/workload.h"
#include "berth/schedule/schedule.h"

namespace berth::run {

struct ActiveRun {
  os::Env& env;
  Observer& observer;
  store::RunRecord record;
  std::unique_ptr<Workload> workload;
  std::string directory;                   // the run's own
  std::vector<store::TaskRecord> tasks{};  // by number, from 1; as they are, durable or not
  std::unordered_map<std::int64_t, AttemptHistory> histories{};  // of tasks that were tried
  Resources machine{};          // all that the only machine has; empty: there are others
  std::set<TaskNumber> only{};  // the tasks that may start; empty: any
  std::optional<schedule::Scheduler> scheduler{};  // from the take-over on
  std::vector<schedule::Effect> effects{};         // of the scheduler, to be carried out in order
  std::optional<Error> error{};                    // why the run cannot go on to its end

  const RunOptions& options() const { return workload->options(); }
  store::TaskRecord& task(TaskNumber number) {
    return tasks.at(static_cast<std::size_t>(number.value - 1));
  }
  const store::TaskRecord& task(TaskNumber number) const {
    return tasks.at(static_cast<std::size_t>(number.value - 1));
  }
  /// "digits-3/17".
  std::string name_of(TaskNumber number) const { return record.name + "/" + task(number).label; }
  /// Of its earlier attempts; of a task that has none, an empty one.
  AttemptHistory history(TaskNumber number) const;
  /// What the attempt that runs asks for, or else the next one.
  ResourceRequest request(TaskNumber number) const;
  bool may_start(TaskNumber number) const { return only.empty() || only.contains(number); }
  /// Whether the attempt is its task's latest, and running; any other was given up.
  bool is_current(TaskNumber number, Token token) const;
  /// The task has no attempt that runs, as far as is recorded, and may get one.
  bool waits(TaskNumber number) const;
  /// It waits or runs, as far as is recorded.
  bool is_open(TaskNumber number) const;
  /// The run cannot go on: what runs goes on to its end, and nothing more starts.
  void give_up(Error because);

  /// The task as the scheduler sees it: its amounts, and one more resource that stands for its
  /// selection of devices.
  schedule::Task scheduled(const store::TaskRecord& of) const;
  /// What a worker offers to the scheduler: the resources of its alloc, and plenty of the resource
  /// of each selection that its devices serve, where a selection that names whole devices counts
  /// once. `asked_by`: the selection that its alloc was leased for; `earlier`: what runs there.
  Resources offered(const cluster::Alloc& alloc,
                    const std::optional<machine::DeviceSelection>& asked_by, Resources resources,
                    std::span<const schedule::Earlier> earlier = {}) const;
};

}  // namespace berth::run
