// Workers that outlive their runner: agents, started on the allocs of a run that asks for it, and
// those that an earlier runner left.
#include <algorithm>

#include "berth/agent/journal.h"
#include "berth/base/text.h"
#include "berth/os/failpoint.h"
#include "berth/os/log.h"
#include "berth/run/drive.h"
#include "berth/run/elsewhere.h"
#include "berth/run/local_place.h"
#include "berth/run/passive.h"

namespace berth::run {
namespace {

constexpr Duration kAnswersWithin = std::chrono::seconds(10);
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

/// Each is waited for as long as its tasks may still run there, but `most`; asked to stop, not for
/// long. Whoever has not answered then is left to its lease.
void find_elsewhere(Site& site, const store::RunRecord& record, Left& left, Duration most,
                    const Note& note) {
  os::Env& env = *site.env;
  auto outposts = find_outposts(site, record);
  std::vector<agent::Attached*> all;
  Duration patience{};
  for (const auto& outpost : outposts) {
    all.push_back(outpost.worker.get());
    patience = std::max(patience, std::min(outpost.patience, most));
  }
  const Mono begun = env.now();
  Mono until = begun + patience, tell_at = begun + kAnswersWithin;
  while (agent::settle_round(env, all, std::min({until, tell_at, env.now() + kLooksForStops}))) {
    if (env.stop_signals() > 0) until = std::min(until, begun + kAnswersWithin);
    if (env.now() >= until) break;
    if (env.now() < tell_at) continue;
    tell_at = until;
    for (const auto& outpost : outposts)
      if (!outpost.worker->ready() && !outpost.worker->lost())
        note(fmt::format("{} does not answer; tasks may run there, so it is waited for",
                         outpost.machine));
  }
  for (auto& [directory, machine, waited, worker] : outposts) {
    if (worker->ready()) {
      for (const auto& earlier : worker->earlier()) left.tokens.push_back(earlier.token);
      left.agents.push_back({"", machine, std::move(worker)});
    } else if (worker->lost()) {
      left.gone.push_back(directory);
    } else {
      note(fmt::format("{} does not answer: what may run there ends with its lease", machine));
    }
  }
}

}  // namespace

Result<Left> find_agents(Site& site, const store::RunRecord& record, Duration most,
                         const Note& note) {
  os::Env& env = *site.env;
  const std::string run = run_directory(site, record.name);
  const std::int64_t epoch = record.epoch + 1;
  Left left;
  find_elsewhere(site, record, left, most, note);
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
      for (const auto& earlier : links[i]->earlier()) left.tokens.push_back(earlier.token);
      left.agents.push_back({directory, env.host_name(), std::move(links[i])});
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
  BERTH_ASSIGN(auto left, find_agents(site, run, kAnswersWithin * 3, [](const std::string&) {}));
  const Mono until = env.now() + kAnswersWithin;
  for (auto& [directory, machine, link] : left.agents) {
    link->tell(exec::Abandon{});
    while (!link->lost() && !link->idle() && env.now() < until) {
      std::vector<os::Watch> watches;
      link->watch(watches);
      BERTH_TRY(env.wait(watches, std::min(until, link->deadline().value_or(until))));
      std::vector<exec::FromWorker> ignored;
      link->turn(watches, ignored);
    }
    link->acknowledge();
    link->finish();
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

/// What an earlier runner left goes on: its agents as our workers, and what those that died had
/// still told. Only attempts that the store knows to run; any other was given up.
void Drive::join_agents() {
  const auto runs = [&](TaskNumber number, Token token) {
    return number.value >= 1 && number.value <= static_cast<std::int64_t>(tasks_.size()) &&
           task(number).state == store::TaskState::running && task(number).token == token;
  };
  for (auto& [directory, machine, link] : left_.agents) {
    auto added = std::make_unique<Berthed>();
    added->id = {++workers_made_};
    added->directory = directory;
    added->machine = std::make_unique<machine::Machine>(link->agent().block);
    added->alloc = {.id = link->agent().alloc,
                    .machine = machine,
                    .block = link->agent().block,
                    .labels = labels_};
    std::vector<schedule::Earlier> earlier;
    for (const auto& each : link->earlier()) {
      if (!runs(each.task, each.token)) {
        link->tell(exec::Cancel{each.token});
        continue;
      }
      earlier.push_back(each);
      live_.emplace(each.token.value, Live{added->id, each.task, 0, task(each.task).devices, true});
    }
    added->apart = true;
    if (directory.empty())
      added->worker = std::move(link);
    else
      added->worker = std::make_unique<LocalPlace>(env_, std::move(link), *added->machine, groups_);
    const auto id = added->id;
    if (!earlier.empty()) added->selection = workload_->wants(task(earlier.front().task)).selection;
    const Resources resources = schedule_resources(*added, added->machine->total().resources);
    berthed_.push_back(std::move(added));
    std::vector<schedule::Effect> effects;
    scheduler_->joined({.id = id,
                        .resources = resources,
                        .earlier = earlier,
                        .machine = directory.empty() ? number_of(machine) : 0},
                       env_.now(), effects);
    for (const auto& effect : effects) {
      if (const auto* cancel = std::get_if<schedule::CancelAttempt>(&effect)) disown(cancel->token);
      effects_.push_back(effect);
    }
  }
  for (auto& message : left_.last_words) {
    const auto [number, token] =
        std::visit([](const auto& one) { return std::pair(one.task, one.token); }, message);
    if (!runs(number, token)) continue;
    if (auto* ended = std::get_if<exec::Ended>(&message))
      hear_last_words(std::move(*ended));
    else if (const auto* metric = std::get_if<exec::Metric>(&message))
      on_metric(*metric);
    else
      handle(message);
  }
  if (!left_.agents.empty()) {
    observer_.on_note(fmt::format("attached to {} worker{} of an earlier runner; {} running",
                                  left_.agents.size(), left_.agents.size() == 1 ? "" : "s",
                                  live_.size()));
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
  check_output(ended, false);
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
  for (auto& ended : lost) on_ended(std::move(ended), false);
  scheduler_->left(berthed.id);
  if (!berthed.directory.empty())
    left_.gone.push_back(berthed.directory);  // forgotten once all of this is durable
}

}  // namespace berth::run
