#include "berth/run/drive/recovery.h"

#include <algorithm>
#include <map>
#include <utility>

#include "berth/agent/client/attached_agent.h"
#include "berth/agent/journal.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/fileset/fileset.h"
#include "berth/os/failpoint.h"
#include "berth/os/log.h"
#include "berth/os/loop.h"
#include "berth/run/state/clusters.h"

namespace berth::run {
namespace {

constexpr Duration kAnswersWithin = std::chrono::seconds(10);
constexpr Duration kEndsWithin = std::chrono::seconds(10);  // what an agent that answers is told to
constexpr Duration kLooksForStops = std::chrono::milliseconds(200);

/// An agent that would not have us (its alloc was never handed over, say) is about to end.
Result<agent::UnacknowledgedJournal> read_when_gone(os::Env& env, const std::string& directory) {
  for (const Mono until = env.now() + kAnswersWithin;;) {
    auto unacknowledged = agent::read_journal(env, directory);
    const bool lives = !unacknowledged && unacknowledged.error().kind == ErrorKind::busy;
    if (!lives || env.now() >= until || env.stop_signals() > 0) return unacknowledged;
    BERTH_TRY(env.loop().turn(env.now() + std::chrono::milliseconds(20)));
  }
}

/// A remote worker that was asked, and what it may run as far as that is recorded.
struct Asked {
  RecoveredRemoteWorker left;
  std::vector<schedule::Earlier> attempts;
  std::string tasks;  // "1, 2, 3 and 5 more"
  bool known = true;  // that these are all
};

Result<std::vector<Asked>> call_remote(Context& context, const store::RunRecord& record) {
  std::vector<Asked> all;
  std::map<Token, const store::TaskRecord*> running;
  BERTH_ASSIGN(auto remote_workers, find_remote_workers(context, record));
  if (remote_workers.empty()) return all;
  BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
  for (const auto& task : tasks)
    if (task.state == store::TaskState::running) running.emplace(task.token, &task);
  for (auto& remote_worker : remote_workers) {
    Asked& asked = all.emplace_back();
    asked.known = remote_worker.attempts.has_value();
    std::vector<std::string> labels;
    for (const Token token : remote_worker.attempts.value_or(std::vector<Token>{})) {
      const auto found = running.find(token);
      asked.known = asked.known && found != running.end();
      if (found == running.end()) continue;
      asked.attempts.push_back({.task = found->second->number, .token = token});
      labels.push_back(found->second->label);
    }
    asked.tasks = list_of(std::move(labels));
    asked.left = std::move(remote_worker);
  }
  return all;
}

std::string silence_of(const Asked& asked) {
  const auto why = asked.left.worker->cut();
  return fmt::format("{} does not answer{}", asked.left.machine,
                     why ? " (" + why->message + ")" : "");
}

/// Those that are known to hold nothing, or only tasks that can wait for them while all else goes
/// on, are called until they answer or cannot be reached. For any other nothing may start before it
/// has answered, or can run nothing any more; at most `most`, and not for long when asked to stop.
void wait_for_remote(os::Env& env, std::span<const Asked> all, Duration most, const Note& note) {
  std::vector<agent::AgentClient*> workers;
  Duration timeout{};
  for (const auto& asked : all) {
    workers.push_back(asked.left.worker.get());
    if (!asked.known) timeout = std::max(timeout, std::min(asked.left.time_left, most));
  }
  const Mono begun = env.now();
  const Mono enough = begun + kAnswersWithin;
  Mono until = std::max(begun + timeout, enough);
  const auto waited_for = [&](const Asked& asked) {
    const auto& worker = *asked.left.worker;
    if (worker.ready() || worker.lost()) return false;
    return env.now() < (asked.known ? enough : until) && !(asked.known && worker.cut());
  };
  bool told = false;
  while (std::ranges::any_of(all, waited_for)) {
    agent::settle_round(env, workers, std::min(until, env.now() + kLooksForStops));
    if (env.stop_signals() > 0) until = std::min(until, enough);
    if (told || env.now() < enough) continue;
    told = true;
    for (const auto& asked : all)
      if (waited_for(asked))
        note(fmt::format("{}; tasks may run on it, so Berth waits for it, at most {}",
                         silence_of(asked), format_duration(until - env.now())));
  }
}

Status find_remote(Context& context, const store::RunRecord& record, RecoveredAgents& recovered,
                   Duration most, const Note& note) {
  BERTH_ASSIGN(auto all, call_remote(context, record));
  wait_for_remote(*context.env, all, most, note);
  for (auto& asked : all) {
    auto& [directory, machine, time_left, attempts, worker] = asked.left;
    const bool silent = !worker->ready() && !worker->lost();
    if (worker->ready()) asked.attempts = worker->earlier();
    if (worker->lost() || (silent && time_left == Duration(0))) {
      if (silent || worker->lost()->kind == ErrorKind::stale)
        note(silence_of(asked) + "; its tasks have ended with its lease");
      (void)fileset::remove_all(*context.env, directory);
      continue;
    }
    if (silent && asked.known && asked.attempts.empty()) continue;  // it ends by itself
    for (const auto& attempt : asked.attempts) recovered.tokens.push_back(attempt.token);
    std::string silence = silent ? silence_of(asked) : "";
    recovered.alive.push_back({.directory = "",
                               .machine = machine,
                               .client = std::move(worker),
                               .attempts = std::move(asked.attempts),
                               .silence = std::move(silence),
                               .tasks = std::move(asked.tasks),
                               .time_left = time_left});
  }
  return {};
}

}  // namespace

Result<RecoveredAgents> find_agents(Context& context, const store::RunRecord& record, Duration most,
                                    const Note& note) {
  os::Env& env = *context.env;
  const std::string run = run_directory(context, record.name);
  const std::int64_t epoch = record.epoch + 1;
  RecoveredAgents recovered;
  BERTH_TRY(find_remote(context, record, recovered, most, note));
  BERTH_ASSIGN(const auto names, list_there(env, agents_directory(run)));
  std::vector<std::unique_ptr<agent::AgentClient>> clients;
  for (const auto& name : names)
    clients.push_back(agent::AttachedAgent::attach(env, agents_directory(run) + "/" + name,
                                                   runner_side(context, epoch)));
  agent::settle(env, clients, env.now() + kAnswersWithin);
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const std::string directory = agents_directory(run) + "/" + names[i];
    if (!clients[i]->lost()) {
      auto attempts = clients[i]->earlier();
      for (const auto& attempt : attempts) recovered.tokens.push_back(attempt.token);
      recovered.alive.push_back({.directory = directory,
                                 .machine = env.host_name(),
                                 .client = std::move(clients[i]),
                                 .attempts = std::move(attempts)});
      continue;
    }
    auto unacknowledged = read_when_gone(env, directory);
    if (!unacknowledged && unacknowledged.error().kind == ErrorKind::busy)
      return fail(ErrorKind::busy, "{}: {}", directory, clients[i]->lost()->message);
    // What cannot be read is not taken for gone: its tasks would run a second time.
    if (!unacknowledged && unacknowledged.error().kind != ErrorKind::not_found)
      return std::unexpected(within(directory, unacknowledged.error()));
    recovered.dead_directories.push_back(directory);
    if (!unacknowledged) continue;
    for (auto& [_, message] : unacknowledged->messages) {
      if (const auto* ended = std::get_if<exec::Ended>(&message))
        recovered.tokens.push_back(ended->token);
      recovered.unacknowledged.push_back(std::move(message));
    }
  }
  return recovered;
}

Status end_agents(Context& context, const store::RunRecord& run) {
  os::Env& env = *context.env;
  const Mono answers_by = env.now() + kAnswersWithin;
  BERTH_ASSIGN(auto recovered,
               find_agents(context, run, kAnswersWithin, [](const std::string&) {}));
  const Mono ends_by = env.now() + kEndsWithin;
  for (auto& agent : recovered.alive) agent.client->send(exec::Abandon{});
  const auto waited_for = [&](const RecoveredAgents::Agent& agent) {
    const auto& client = *agent.client;
    if (client.lost() || (client.ready() && client.idle())) return false;
    return env.now() < (client.ready() ? ends_by : answers_by);
  };
  std::vector<exec::FromWorker> ignored;
  while (std::ranges::any_of(recovered.alive, waited_for)) {
    BERTH_TRY(env.loop().turn(env.now() + kLooksForStops));
    for (auto& agent : recovered.alive) agent.client->take_messages(ignored);
  }
  for (auto& agent : recovered.alive) {
    if (!agent.client->ready()) continue;  // it has been called for long enough
    agent.client->acknowledge();
    agent.client->finish();
  }
  return {};
}

/// One that is silent has its tasks until it answers or can run nothing any more, and gets no
/// others.
void Recovery::attach(RecoveredAgents::Agent& agent) {
  const bool silent = !agent.silence.empty();
  const auto block = silent ? machine::Block{} : agent.client->agent().block;
  Lease lease{.alloc = {.id = silent ? machine::AllocId{} : agent.client->agent().alloc,
                        .machine = agent.machine,
                        .block = block,
                        .labels = leases_.labels()},
              .is_remote = agent.directory.empty()};
  auto* client = agent.client.get();
  WorkerSlot& slot = workers_.attach(std::move(agent.client), std::move(lease), agent.directory);
  const auto earlier = attempts_.adopt(slot, agent.attempts);
  if (silent) {
    slot.silent = client;
    slot.silence = agent.silence;
    run_.observer.on_note(
        fmt::format("{}; task {} may run on it, so Berth waits for it, at most {}", agent.silence,
                    agent.tasks, format_duration(agent.time_left)));
  }
  if (!earlier.empty()) slot.lease.selection = run_.request(earlier.front().task).selection;
  Resources resources =
      run_.offered(slot.lease.alloc, slot.lease.selection, block.resources, earlier);
  if (silent)
    for (const auto& each : earlier)
      (void)resources.add(machine::charged(run_.request(each.task).resources));
  std::vector<schedule::Effect> effects;
  run_.scheduler->joined({.id = slot.id,
                          .resources = resources,
                          .earlier = earlier,
                          .machine = leases_.number_of(slot.lease)},
                         run_.env.now(), effects);
  if (silent) run_.scheduler->close(slot.id);
  attempts_.adopted(earlier, effects);
}

void Recovery::join() {
  run_.scheduler->begin_recovery();
  for (auto& agent : found_.alive)
    if (agent.silence.empty() || !agent.attempts.empty()) attach(agent);
  for (auto& message : std::exchange(found_.unacknowledged, {})) {
    const auto [number, token] =
        std::visit([](const auto& one) { return std::pair(one.task, one.token); }, message);
    if (!run_.is_current(number, token)) continue;
    if (auto* ended = std::get_if<exec::Ended>(&message))
      attempts_.end_from_journal(std::move(*ended));
    else if (const auto* metric = std::get_if<exec::Metric>(&message))
      attempts_.report_metric(*metric);
    else
      attempts_.handle(std::move(message));
  }
  const auto answered = std::ranges::count(found_.alive, "", &RecoveredAgents::Agent::silence);
  if (answered > 0)
    run_.observer.on_note(fmt::format("attached to {} worker{} of an earlier runner; {} running",
                                      answered, answered == 1 ? "" : "s", attempts_.count()));
  run_.scheduler->end_recovery(run_.env.now(), run_.effects);
  // Another call would only renew the lease of one of which nothing is known, and nobody waits.
  found_.alive.clear();
  os::failpoint("agents joined");
  attempts_.carry_out();
}

void Recovery::reconcile(bool stopping) {
  for (auto& slot : workers_) {
    if (slot->silent == nullptr || !slot->silent->ready()) continue;
    attempts_.reconcile(*slot, std::exchange(slot->silent, nullptr)->earlier(), !stopping);
    run_.observer.on_note(fmt::format("{} answers again", slot->lease.alloc.machine));
  }
}

void Recovery::reap(const WorkerSlot& slot) {
  const std::string& because = slot.lost->message;
  const std::string& directory = slot.agent_directory;
  os::log_event(run_.env, "worker lost",
                {{"worker", fmt::format("{}", slot.id.value)}, {"why", json_quote(because)}});
  if (auto journal = directory.empty() ? fail(ErrorKind::not_found, "no journal")
                                       : agent::read_journal(run_.env, directory)) {
    for (auto& [number, message] : journal->messages)
      if (auto* ended = std::get_if<exec::Ended>(&message))
        attempts_.end(std::move(*ended), false);
      else if (number > slot.worker->last_taken())
        attempts_.handle(std::move(message));
  }
  // Where no control group holds them, the children of its tasks live on, beside the next attempts.
  if (!slot.lease.is_remote)
    (void)end_orphans(run_.env, run_.directory, [&](std::optional<Token> token) {
      return token && attempts_.runs_on(*token, slot.id);
    });
  attempts_.lose(slot.id, because);
  run_.scheduler->left(slot.id);
  if (!directory.empty()) found_.dead_directories.push_back(directory);
}

void Recovery::forget_dead() {
  // The take-over is durable, and not all of these.
  if (!found_.unacknowledged.empty() || attempts_.journals_are_needed()) return;
  // What cannot be removed now is tried again at the next commit.
  std::erase_if(found_.dead_directories, [&](const std::string& directory) {
    return agent::forget_agent(run_.env, directory).has_value() || !run_.env.status(directory);
  });
}

}  // namespace berth::run
