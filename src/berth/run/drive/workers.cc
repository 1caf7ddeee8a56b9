#include "berth/run/drive/workers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "berth/agent/client/launched_agent.h"
#include "berth/agent/layout.h"
#include "berth/base/text.h"
#include "berth/run/drive/local_worker.h"
#include "berth/run/drive/passive_worker.h"
#include "berth/run/state/recorded_environment.h"

namespace berth::run {

agent::RunnerSide runner_side(const Context& context, std::int64_t epoch) {
  return {epoch, task_environment(context)};
}

WorkerSlot& Workers::assign(Lease lease, const Source& source) {
  auto& slot = *slots_.emplace_back(
      std::make_unique<WorkerSlot>(WorkerSlot{.id = next_id(), .lease = std::move(lease)}));
  slot.worker = start(slot, source);
  return slot;
}

/// Starts the worker, in a process of its own where the run's tasks are to outlive this one.
std::unique_ptr<exec::Worker> Workers::start(WorkerSlot& slot, const Source& source) {
  os::Env& env = run_.env;
  const RunOptions& options = run_.options();
  slot.apart = true;
  if (!options.asked.empty())
    return std::make_unique<PassiveWorker>(
        env, answers_directory(run_.directory), [this](const exec::Launch& launch) {
          run_.observer.on_question(question_of(run_.env, run_.directory, run_.task(launch.task),
                                                launch, run_.options().asked));
        });
  if (source.start_worker) return source.start_worker(slot.lease.alloc);
  std::unique_ptr<agent::AgentClient> agent;
  const auto program = options.outlive ? agent::agent_program(env) : Result<std::string>("");
  if (!program)
    run_.observer.on_note("its tasks end with this process: " + program.error().message);
  slot.apart = options.outlive && program;
  if (slot.apart) {
    slot.agent_directory =
        fmt::format("{}/{}-{}", agents_directory(run_.directory), run_.record.epoch, slot.id.value);
    agent = agent::LaunchedAgent::start(env,
                                        {.program = *program,
                                         .directory = slot.agent_directory,
                                         .block = slot.lease.alloc.block,
                                         .ledger_directory = context_.ledger_directory,
                                         .alloc = slot.lease.alloc.id},
                                        runner_side(context_, run_.record.epoch));
  }
  return std::make_unique<LocalWorker>(env, std::move(agent), slot.lease.alloc.block, groups_,
                                       task_environment(context_),
                                       agent::commands_directory(run_.directory));
}

WorkerSlot& Workers::attach(std::unique_ptr<agent::AgentClient> agent, Lease lease,
                            std::string directory) {
  auto& slot = *slots_.emplace_back(
      std::make_unique<WorkerSlot>(WorkerSlot{.id = next_id(),
                                              .lease = std::move(lease),
                                              .apart = true,
                                              .agent_directory = std::move(directory)}));
  if (slot.lease.is_remote)
    slot.worker = std::move(agent);
  else
    slot.worker = std::make_unique<LocalWorker>(run_.env, std::move(agent), slot.lease.alloc.block,
                                                groups_, task_environment(context_),
                                                agent::commands_directory(run_.directory));
  return slot;
}

WorkerSlot* Workers::find(schedule::WorkerId id) {
  const auto found = std::ranges::find(slots_, id, [](const auto& slot) { return slot->id; });
  return found == slots_.end() ? nullptr : found->get();
}

void Workers::send(schedule::WorkerId id, const exec::ToWorker& message) {
  if (WorkerSlot* slot = find(id)) slot->worker->send(message);
}

WorkerSlot* Workers::primary() {
  const auto first = std::ranges::find_if(
      slots_, [](const auto& slot) { return slot->lease.source == 0 && slot->silence.empty(); });
  return first == slots_.end() ? nullptr : first->get();
}

Holdings Workers::holdings(bool is_running) const {
  Holdings holdings{.has_workers = !slots_.empty(), .is_running = is_running};
  std::vector<std::string> silences;
  for (const auto& slot : slots_) {
    holdings.has_alloc = holdings.has_alloc || slot->silence.empty();
    if (slot->silent != nullptr) silences.push_back(slot->silence);
  }
  holdings.silences = join(silences, "; ");
  return holdings;
}

std::string Workers::doing() const {
  for (const auto& slot : slots_)
    if (auto doing = slot->worker->doing(); !doing.empty()) return doing;
  return "";
}

void Workers::set_reading(bool reads_output) {
  for (auto& slot : slots_) slot->worker->set_reading(reads_output);
}

void Workers::collect() {
  for (auto& slot : slots_) slot->worker->take_messages(slot->deferred);
}

std::vector<exec::FromWorker> Workers::take_messages() {
  std::vector<exec::FromWorker> messages;
  for (auto& slot : slots_)
    std::ranges::move(std::exchange(slot->deferred, {}), std::back_inserter(messages));
  return messages;
}

bool Workers::has_messages() const {
  return std::ranges::any_of(slots_, [](const auto& slot) { return !slot->deferred.empty(); });
}

std::optional<Mono> Workers::deadline() const {
  std::optional<Mono> first;
  const auto consider = [&](std::optional<Mono> at) {
    if (at && (!first || *at < *first)) first = at;
  };
  for (const auto& slot : slots_) {
    consider(slot->lease.renew_at);
    consider(slot->lease.alloc.closes);
  }
  return first;
}

void Workers::close_lost() {
  for (auto& slot : slots_) {
    if (!slot->lost) slot->lost = slot->worker->lost();
    if (slot->lost) run_.scheduler->close(slot->id);
  }
}

std::vector<std::unique_ptr<WorkerSlot>> Workers::take_lost() {
  return take([](const WorkerSlot& slot) { return slot.lost.has_value(); });
}

std::vector<std::unique_ptr<WorkerSlot>> Workers::take(
    const std::function<bool(const WorkerSlot&)>& chosen) {
  std::vector<std::unique_ptr<WorkerSlot>> taken;
  for (auto& slot : slots_)
    if (chosen(*slot)) taken.push_back(std::move(slot));
  std::erase(slots_, nullptr);
  return taken;
}

}  // namespace berth::run
