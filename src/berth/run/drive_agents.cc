// Workers that outlive their runner: agents, started on the allocs of a run that asks for it, and
// those that an earlier runner left.
#include <algorithm>
#include <utility>

#include "berth/agent/journal.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/fileset/fileset.h"
#include "berth/os/failpoint.h"
#include "berth/os/log.h"
#include "berth/run/drive.h"
#include "berth/run/elsewhere.h"
#include "berth/run/local_place.h"
#include "berth/run/passive.h"

namespace berth::run {
namespace {

constexpr Duration kAnswersWithin = std::chrono::seconds(10);
constexpr Duration kEndsWithin = std::chrono::seconds(10);  // what an agent that answers is told to
constexpr Duration kLooksForStops = std::chrono::milliseconds(200);

std::string agents_directory(const std::string& run) {
  return run + "/agents";
}

agent::RunnerSide runner_side(os::Env& env, std::int64_t epoch) {
  return {epoch, inherited_environment(env)};
}

/// An agent that would not have us (its alloc was never handed over, say) is about to end.
Result<agent::Remains> read_when_gone(os::Env& env, const std::string& directory) {
  for (const Mono until = env.now() + kAnswersWithin;;) {
    auto remains = agent::read_journal(env, directory);
    const bool lives = !remains && remains.error().kind == ErrorKind::busy;
    if (!lives || env.now() >= until || env.stop_signals() > 0) return remains;
    BERTH_TRY(env.wait({}, env.now() + std::chrono::milliseconds(20)));
  }
}

/// One elsewhere, and what of the run it may be at, as far as that is recorded.
struct Asked {
  LeftElsewhere left;
  std::vector<schedule::Earlier> attempts;
  std::string tasks;  // "1, 2, 3 and 5 more"
  bool known = true;  // that these are all
};

Result<std::vector<Asked>> call_elsewhere(Site& site, const store::RunRecord& record) {
  std::vector<Asked> all;
  std::map<Token, const store::TaskRecord*> running;
  auto outposts = find_outposts(site, record);
  if (outposts.empty()) return all;
  BERTH_ASSIGN(const auto tasks, site.store->tasks(record.id));
  for (const auto& task : tasks)
    if (task.state == store::TaskState::running) running.emplace(task.token, &task);
  for (auto& outpost : outposts) {
    Asked& asked = all.emplace_back();
    asked.known = outpost.attempts.has_value();
    std::vector<std::string> labels;
    for (const Token token : outpost.attempts.value_or(std::vector<Token>{})) {
      const auto found = running.find(token);
      asked.known = asked.known && found != running.end();
      if (found == running.end()) continue;
      asked.attempts.push_back({.task = found->second->number, .token = token});
      labels.push_back(found->second->label);
    }
    asked.tasks = list_of(std::move(labels));
    asked.left = std::move(outpost);
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
void wait_elsewhere(os::Env& env, std::span<const Asked> all, Duration most, const Note& note) {
  std::vector<agent::Attached*> workers;
  Duration patience{};
  for (const auto& asked : all) {
    workers.push_back(asked.left.worker.get());
    if (!asked.known) patience = std::max(patience, std::min(asked.left.time_left, most));
  }
  const Mono begun = env.now();
  const Mono enough = begun + kAnswersWithin;
  Mono until = std::max(begun + patience, enough);
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
        note(fmt::format("{}; tasks may run there, so it is waited for, at most {}",
                         silence_of(asked), format_duration(until - env.now())));
  }
}

Status find_elsewhere(Site& site, const store::RunRecord& record, Left& left, Duration most,
                      const Note& note) {
  BERTH_ASSIGN(auto all, call_elsewhere(site, record));
  wait_elsewhere(*site.env, all, most, note);
  for (auto& asked : all) {
    auto& [directory, machine, time_left, attempts, worker] = asked.left;
    const bool silent = !worker->ready() && !worker->lost();
    if (worker->ready()) asked.attempts = worker->earlier();
    if (worker->lost() || (silent && time_left == Duration(0))) {
      if (silent || worker->lost()->kind == ErrorKind::stale)
        note(silence_of(asked) + "; what ran there has ended with its lease");
      (void)fileset::remove_all(*site.env, directory);
      continue;
    }
    if (silent && asked.known && asked.attempts.empty()) continue;  // it ends by itself
    for (const auto& attempt : asked.attempts) left.tokens.push_back(attempt.token);
    std::string silence = silent ? silence_of(asked) : "";
    left.agents.push_back({.directory = "",
                           .machine = machine,
                           .link = std::move(worker),
                           .attempts = std::move(asked.attempts),
                           .silence = std::move(silence),
                           .tasks = std::move(asked.tasks),
                           .time_left = time_left});
  }
  return {};
}

/// What they say is heard by nobody.
Status turn_all(os::Env& env, std::span<Left::Agent> agents) {
  std::vector<os::Watch> watches;
  std::vector<std::size_t> begins;
  Mono until = env.now() + kLooksForStops;
  for (auto& agent : agents) {
    begins.push_back(watches.size());
    agent.link->watch(watches);
    until = std::min(until, agent.link->deadline().value_or(until));
  }
  begins.push_back(watches.size());
  BERTH_TRY(env.wait(watches, until));
  std::vector<exec::FromWorker> ignored;
  for (std::size_t i = 0; i < agents.size(); ++i)
    agents[i].link->turn(std::span(watches).subspan(begins[i], begins[i + 1] - begins[i]), ignored);
  return {};
}

}  // namespace

Result<Left> find_agents(Site& site, const store::RunRecord& record, Duration most,
                         const Note& note) {
  os::Env& env = *site.env;
  const std::string run = run_directory(site, record.name);
  const std::int64_t epoch = record.epoch + 1;
  Left left;
  BERTH_TRY(find_elsewhere(site, record, left, most, note));
  const auto names = env.list(agents_directory(run));
  if (!names) return left;
  std::vector<std::unique_ptr<agent::Link>> links;
  for (const auto& name : *names)
    links.push_back(
        agent::Link::attach(env, agents_directory(run) + "/" + name, runner_side(env, epoch)));
  agent::settle(env, links, env.now() + kAnswersWithin);
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::string directory = agents_directory(run) + "/" + (*names)[i];
    if (!links[i]->lost()) {
      auto attempts = links[i]->earlier();
      for (const auto& attempt : attempts) left.tokens.push_back(attempt.token);
      left.agents.push_back({.directory = directory,
                             .machine = env.host_name(),
                             .link = std::move(links[i]),
                             .attempts = std::move(attempts)});
      continue;
    }
    auto remains = read_when_gone(env, directory);
    if (!remains && remains.error().kind == ErrorKind::busy)
      return fail(ErrorKind::busy, "{}: {}", directory, links[i]->lost()->message);
    left.gone.push_back(directory);
    if (!remains) continue;
    for (auto& message : remains->messages) {
      if (const auto* ended = std::get_if<exec::Ended>(&message))
        left.tokens.push_back(ended->token);
      left.last_words.push_back(std::move(message));
    }
  }
  return left;
}

Status end_agents(Site& site, const store::RunRecord& run) {
  os::Env& env = *site.env;
  const Mono answers_by = env.now() + kAnswersWithin;
  BERTH_ASSIGN(auto left, find_agents(site, run, kAnswersWithin, [](const std::string&) {}));
  const Mono ends_by = env.now() + kEndsWithin;
  for (auto& agent : left.agents) agent.link->tell(exec::Abandon{});
  const auto waited_for = [&](const Left::Agent& agent) {
    const auto& link = *agent.link;
    if (link.lost() || (link.ready() && link.idle())) return false;
    return env.now() < (link.ready() ? ends_by : answers_by);
  };
  while (std::ranges::any_of(left.agents, waited_for)) BERTH_TRY(turn_all(env, left.agents));
  for (auto& agent : left.agents) {
    if (!agent.link->ready()) continue;  // it has been called for long enough
    agent.link->acknowledge();
    agent.link->finish();
  }
  return {};
}

/// A worker on the alloc: in a process of its own where the run's tasks are to outlive us.
void Drive::staff(Berthed& berthed) {
  if (!manner_.asked.empty()) {
    berthed.apart = true;
    berthed.worker = std::make_unique<Passive>(env_, answers_directory(directory_),
                                               [this](const auto& launch) { ask(launch); });
    return;
  }
  if (const auto& elsewhere = leasings_[berthed.source].source.staff) {
    berthed.apart = true;
    berthed.worker = elsewhere(berthed.alloc);
    return;
  }
  const auto program = manner_.outlive ? agent::agent_program(env_) : Result<std::string>("");
  if (!program) observer_.on_note("its tasks end with this process: " + program.error().message);
  if (manner_.outlive && program) {
    berthed.directory =
        fmt::format("{}/{}-{}", agents_directory(directory_), record_.epoch, berthed.id.value);
    berthed.apart = true;
    auto agent = agent::Link::start(env_,
                                    {.program = *program,
                                     .directory = berthed.directory,
                                     .block = berthed.alloc.block,
                                     .ledger_directory = site_.ledger_directory,
                                     .alloc = berthed.alloc.id},
                                    runner_side(env_, record_.epoch));
    berthed.worker =
        std::make_unique<LocalPlace>(env_, std::move(agent), *berthed.machine, groups_);
  } else {
    berthed.worker = std::make_unique<exec::Worker>(env_, *berthed.machine, groups_,
                                                    inherited_environment(env_));
  }
}

/// Whether the store has the attempt as its task's, and running; any other was given up.
bool Drive::knows(TaskNumber number, Token token) {
  return number.value >= 1 && number.value <= static_cast<std::int64_t>(tasks_.size()) &&
         task(number).state == store::TaskState::running && task(number).token == token;
}

/// An agent of an earlier runner as our worker. One that is silent has its tasks until it answers
/// or can run nothing any more, and gets no others.
void Drive::attach(Left::Agent& agent) {
  auto added = std::make_unique<Berthed>();
  const bool silent = !agent.silence.empty();
  added->id = {++workers_made_};
  added->directory = agent.directory;
  const auto block = silent ? machine::Block{} : agent.link->agent().block;
  added->machine = std::make_unique<machine::Machine>(block);
  added->alloc = {.id = silent ? machine::AllocId{} : agent.link->agent().alloc,
                  .machine = agent.machine,
                  .block = block,
                  .labels = labels_};
  std::vector<schedule::Earlier> earlier;
  for (const auto& each : agent.attempts) {
    if (!knows(each.task, each.token)) {
      agent.link->tell(exec::Cancel{each.token});
      continue;
    }
    earlier.push_back(each);
    live_.emplace(each.token.value, Live{added->id, each.task, 0, task(each.task).devices, true});
  }
  added->apart = true;
  if (silent) {
    added->silent = agent.link.get();
    added->silence = agent.silence;
    observer_.on_note(fmt::format("{}; task {} may run there, so it is waited for, at most {}",
                                  agent.silence, agent.tasks, format_duration(agent.time_left)));
  }
  if (agent.directory.empty())
    added->worker = std::move(agent.link);
  else
    added->worker =
        std::make_unique<LocalPlace>(env_, std::move(agent.link), *added->machine, groups_);
  const auto id = added->id;
  if (!earlier.empty()) added->selection = workload_->wants(task(earlier.front().task)).selection;
  Resources resources = schedule_resources(*added, added->machine->total().resources, earlier);
  if (silent)
    for (const auto& each : earlier)
      (void)resources.add(machine::charged(workload_->wants(task(each.task)).resources));
  berthed_.push_back(std::move(added));
  std::vector<schedule::Effect> effects;
  scheduler_->joined({.id = id,
                      .resources = resources,
                      .earlier = earlier,
                      .machine = agent.directory.empty() ? number_of(agent.machine) : 0},
                     env_.now(), effects);
  for (const auto& each : earlier)
    if (const auto live = live_.find(each.token.value); live != live_.end())
      live->second.ahead = scheduler_->waits(each.token);
  if (silent) scheduler_->close(id);
  for (const auto& effect : effects) {
    if (const auto* cancel = std::get_if<schedule::CancelAttempt>(&effect)) disown(cancel->token);
    effects_.push_back(effect);
  }
}

/// Of those that were silent when we began: what they do not run has to be run again.
void Drive::hear_of_the_silent() {
  for (auto& berthed : berthed_) {
    if (berthed->silent == nullptr || !berthed->silent->ready()) continue;
    const auto attempts = std::exchange(berthed->silent, nullptr)->earlier();
    for (const auto& [number, token, verdict] : attempts)
      if (stops_heeded_ > 0 || !live_.contains(token.value))
        berthed->worker->tell(exec::Cancel{token});
    for (const auto& [token, live] : live_)
      if (live.worker == berthed->id &&
          std::ranges::find(attempts, Token{token}, &schedule::Earlier::token) == attempts.end())
        unstarted_.push_back({.task = live.task,
                              .token = {token},
                              .cause = exec::Cause::worker_lost,
                              .exit_code = {},
                              .detail = berthed->alloc.machine + " does not know of it"});
    observer_.on_note(fmt::format("{} answers again", berthed->alloc.machine));
  }
}

/// What an earlier runner left goes on: its agents as our workers, and what those that died had
/// still told.
void Drive::join_agents() {
  for (auto& agent : left_.agents)
    if (agent.silence.empty() || !agent.attempts.empty()) attach(agent);
  for (auto& message : left_.last_words) {
    const auto [number, token] =
        std::visit([](const auto& one) { return std::pair(one.task, one.token); }, message);
    if (!knows(number, token)) continue;
    if (auto* ended = std::get_if<exec::Ended>(&message))
      hear_last_words(std::move(*ended));
    else if (const auto* metric = std::get_if<exec::Metric>(&message))
      on_metric(*metric);
    else
      handle(message);
  }
  if (!left_.agents.empty()) {
    const auto answered = std::ranges::count(left_.agents, "", &Left::Agent::silence);
    if (answered > 0)
      observer_.on_note(fmt::format("attached to {} worker{} of an earlier runner; {} running",
                                    answered, answered == 1 ? "" : "s", live_.size()));
    look_at_ = env_.now();
  }
  os::failpoint("agents joined");
  carry_out();
}

/// The scheduler will not have it: the task starts anew.
void Drive::disown(Token token) {
  const auto live = live_.find(token.value);
  if (live == live_.end()) return;
  const TaskNumber number = live->second.task;
  live_.erase(live);
  if (manner_.in_turn) scheduler_->proceed(number, effects_);
}

/// The end of an attempt whose agent is gone: told by its journal.
void Drive::hear_last_words(exec::Ended ended) {
  const schedule::WorkerId ghost{++workers_made_};
  const Live live{ghost, ended.task, 0};
  if (!check_output(ended, false)) return;
  std::vector<schedule::Effect> effects;
  scheduler_->joined(
      {.id = ghost, .resources = {}, .earlier = {{ended.task, ended.token, verdict_of(ended)}}},
      env_.now(), effects);
  scheduler_->left(ghost);
  take_effects(ended, live, effects);
}

/// Where no control group holds them, the children of its tasks live on, beside the next attempts.
void Drive::end_what_is_left(const Berthed& berthed) {
  if (leasings_[berthed.source].source.staff) return;  // they are on another machine
  (void)end_orphans(env_, directory_, [&](std::optional<Token> token) {
    const auto live = token ? live_.find(token->value) : live_.end();
    return live != live_.end() && live->second.worker == berthed.id;
  });
}

/// Its journal tells what had come to an end; whatever else ran there starts again elsewhere.
void Drive::bury(Berthed& berthed) {
  const std::string because = berthed.lost->message;
  os::log_event(env_, "worker lost",
                {{"worker", fmt::format("{}", berthed.id.value)}, {"why", json_quote(because)}});
  if (auto remains = berthed.directory.empty() ? fail(ErrorKind::not_found, "no journal")
                                               : agent::read_journal(env_, berthed.directory)) {
    for (auto& message : remains->messages)
      if (auto* ended = std::get_if<exec::Ended>(&message))
        on_ended(std::move(*ended), false);
      else if (!std::holds_alternative<exec::Output>(message))  // shown as it came
        handle(message);
  }
  end_what_is_left(berthed);
  std::vector<exec::Ended> lost;
  for (const auto& [token, live] : live_)
    if (live.worker == berthed.id)
      lost.push_back({.task = live.task,
                      .token = {token},
                      .cause = exec::Cause::worker_lost,
                      .exit_code = {},
                      .detail = because});
  for (auto& ended : lost) {
    const TaskNumber number = ended.task;
    on_ended(std::move(ended), false);
    scheduler_->settle_for(number, effects_);  // another job may well be on the same machine
  }
  scheduler_->left(berthed.id);
  if (!berthed.directory.empty())
    left_.gone.push_back(berthed.directory);  // forgotten once all of this is durable
}

}  // namespace berth::run
