// Who works on an alloc of this machine: an agent, whose tasks go on when this process dies, and
// this process itself for tasks so brief that nobody would miss them (brief_tasks.h), which it
// starts in a third of the time. A task that this process would have to be moved to another control
// group for is the agent's too.
//
// Threads: one. Failure: as Workplace has it; it is lost with its agent. Where none can be started
// (no room, no descriptors) all is done here.
#pragma once

#include "berth/agent/link.h"
#include "berth/exec/worker.h"
#include "berth/run/brief_tasks.h"

namespace berth::run {

class LocalPlace final : public exec::Workplace {
 public:
  /// `machine` and `groups` outlive it.
  LocalPlace(os::Env& env, std::unique_ptr<agent::Attached> agent, machine::Machine& machine,
             machine::Groups& groups);

  void tell(const exec::ToWorker& message) override;
  void watch(std::vector<os::Watch>& watches, bool read_output = true) override;
  std::optional<Mono> deadline() const override;
  void turn(std::span<const os::Watch> watches, std::vector<exec::FromWorker>& messages) override;
  bool idle() const override { return (alone_ || agent_->idle()) && here_.idle(); }
  void acknowledge() override { agent_->acknowledge(); }
  void finish() override { agent_->finish(); }
  void retain(Duration time) override { agent_->retain(time); }
  std::optional<Error> lost() const override { return alone_ ? std::nullopt : agent_->lost(); }

 private:
  void tell_agent(const exec::ToWorker& message);

  os::Env& env_;
  std::unique_ptr<agent::Attached> agent_;
  machine::Groups& groups_;
  exec::Worker here_;
  BriefTasks brief_;
  std::vector<exec::ToWorker> unheard_;  // by an agent that has not answered yet
  std::size_t agents_watches_ = 0;
  bool alone_ = false;
};

}  // namespace berth::run
