// A LocalWorker works on an alloc of this machine. Its agent's tasks go on when this process dies;
// this process itself starts the tasks that are so brief that nobody would miss them
// (brief_tasks.h), in a third of the time, unless it had to be moved to another control group for
// them. Without an agent, or where none can be started (no room, no descriptors), this process
// starts all of them.
//
// Ownership: it owns its agent client and the books of its alloc; the Groups outlive it. Threads:
// one. Failure: as Worker has it; it is lost with its agent.
#pragma once

#include "berth/agent/client/agent_client.h"
#include "berth/exec/process_worker.h"
#include "berth/machine/machine.h"
#include "berth/run/drive/brief_tasks.h"

namespace berth::run {

class LocalWorker final : public exec::Worker {
 public:
  /// `agent`: nullptr where the tasks end with this process. `environment` is that of the tasks
  /// which this process starts, and `files` the directory for files that they need meanwhile.
  LocalWorker(os::Env& env, std::unique_ptr<agent::AgentClient> agent, const machine::Block& block,
              machine::Groups& groups, exec::Environment environment, std::string files);

  void send(const exec::ToWorker& message) override;
  void set_reading(bool reads_output) override;
  void take_messages(std::vector<exec::FromWorker>& messages) override;
  std::int64_t last_taken() const override { return agent_ ? agent_->last_taken() : 0; }
  bool idle() const override { return (alone_ || agent_->idle()) && processes_.idle(); }
  void acknowledge() override {
    if (agent_) agent_->acknowledge();
  }
  void finish() override {
    if (agent_) agent_->finish();
  }
  void retain(Duration time) override {
    if (agent_) agent_->retain(time);
  }
  std::optional<Error> lost() const override { return alone_ ? std::nullopt : agent_->lost(); }

 private:
  void send_to_agent(const exec::ToWorker& message);

  os::Env& env_;
  std::unique_ptr<agent::AgentClient> agent_;
  machine::Groups& groups_;
  machine::Machine machine_;  // the books of what this process starts
  exec::ProcessWorker processes_;
  BriefTasks brief_;
  std::vector<exec::ToWorker> unsent_;  // by an agent that has not answered yet
  bool alone_;                          // there is no agent (any more)
};

}  // namespace berth::run
