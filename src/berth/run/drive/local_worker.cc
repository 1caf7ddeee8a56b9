#include "berth/run/drive/local_worker.h"

#include <algorithm>

#include <utility>

namespace berth::run {

LocalWorker::LocalWorker(os::Env& env, std::unique_ptr<agent::AgentClient> agent,
                         const machine::Block& block, machine::Groups& groups,
                         exec::Environment environment, std::string files)
    : env_(env),
      agent_(std::move(agent)),
      groups_(groups),
      machine_(block),
      processes_(env, machine_, groups, std::move(environment)),
      alone_(agent_ == nullptr) {
  processes_.keep_files_in(std::move(files));
}

void LocalWorker::send(const exec::ToWorker& message) {
  const auto* launch = std::get_if<exec::Launch>(&message);
  if (launch == nullptr) {  // each knows its own tokens
    send_to_agent(message);
    return processes_.send(message);
  }
  const std::string& name = launch->request.holder;
  // The agent's tasks stand in no book of ours.
  const bool watched = launch->gpu_mem_over != exec::GpuMemOver::unwatched;  // by the agent alone
  const bool here = alone_ || (agent_->idle() && brief_.typical(name) > Duration(0) && !watched &&
                               groups_.holds_as_is(launch->request.resources));
  brief_.began(launch->token, name, env_.now());
  if (here)
    processes_.send(message);
  else
    send_to_agent(message);
}

void LocalWorker::send_to_agent(const exec::ToWorker& message) {
  if (alone_) return;
  if (!agent_->ready()) unsent_.push_back(message);
  agent_->send(message);
}

void LocalWorker::set_reading(bool reads_output) {
  if (!alone_) agent_->set_reading(reads_output);
  processes_.set_reading(reads_output);
}

void LocalWorker::take_messages(std::vector<exec::FromWorker>& messages) {
  const std::size_t before = messages.size();
  if (!alone_) agent_->take_messages(messages);
  if (!alone_ && agent_->ready()) unsent_.clear();
  if (!alone_ && agent_->lost() && !agent_->has_alloc()) {
    alone_ = true;
    for (const auto& message : unsent_) processes_.send(message);
    unsent_.clear();
  }
  processes_.take_messages(messages);
  for (std::size_t i = before; i < messages.size(); ++i)
    if (const auto* ended = std::get_if<exec::Ended>(&messages[i]))
      brief_.ended(ended->token, env_.now());
}

}  // namespace berth::run
