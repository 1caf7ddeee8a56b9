// The runner in the simulation carries out effects, records what happens, crashes and recovers.
#include <fmt/core.h>

#include <algorithm>
#include <ranges>

#include "berth/testing/simulation_world.h"

namespace berth::schedule::testing {
namespace {

constexpr Duration kLease = std::chrono::seconds(10);

}  // namespace

/// The only start-up path reads the rows. Tasks that ran when the rows were written are gated, so
/// that they do not start anew before their workers had time to come back.
void Simulation::recover() {
  options_.epoch = ++epoch_;
  scheduler_.emplace(options_);
  last_token_ = {epoch_ << 32};
  view_.clear();
  add_tasks(0);
  absorb();
}

void Simulation::add_tasks(std::size_t first) {
  std::vector<Task> tasks;
  for (std::size_t i = first; i < rows_.size(); ++i) {
    Task task = rows_[i].task;
    task.retries = std::max(0, task.retries - rows_[i].failures);
    task.settled = rows_[i].state != State::open;
    task.gated = task.gated || rows_[i].running;
    task.fence = {rows_[i].token.value + (rows_[i].running ? 0 : 1)};
    view_.push_back(rows_[i].state);
    if (!task.settled && task.gated) gated_.push_back(task.number);
    tasks.push_back(std::move(task));
  }
  scheduler_->add(tasks, effects_);
}

void Simulation::crash() {
  ++figures_.crashes;
  stopping_ = false;  // whoever stopped it resumes it
  figures_.stale += scheduler_->stale();
  scheduler_.reset();
  effects_.clear();
  live_.clear();
  hold_.reset();
  used_.clear();
  gated_.clear();
  lost_.clear();
  batch_.clear();
  for (auto& process : processes_) {
    process->known_as.reset();
    if (!chance(50)) continue;  // else what was sent still comes
    process->inbox.clear();
    process->cancels.clear();
  }
}

void Simulation::absorb() {
  for (std::size_t i = 0; i < effects_.size() && broken_.empty(); ++i) {
    const Effect effect = effects_[i];
    if (const auto* start = std::get_if<StartAttempt>(&effect)) {
      if (start->token <= last_token_) broke("a token was issued twice");
      last_token_ = start->token;
      on_start(*start);
      if (plant_ == Plant::double_start && chance(2))
        on_start({start->task, {start->token.value + (1 << 20)}, start->worker});
    } else if (const auto* settled = std::get_if<TaskSettled>(&effect)) {
      on_settled(*settled);
    } else if (const auto* cancel = std::get_if<CancelAttempt>(&effect)) {
      for (auto& process : processes_)
        if (process->known_as == cancel->worker) process->cancels.push_back(cancel->token);
    }
  }
  effects_.clear();
  free_closed_stealers();
  check_hold();
}

void Simulation::send_ahead() {
  const auto& process = *processes_[rng_.below(processes_.size())];
  if (!process.known_as) return;
  scheduler_->send_ahead(*process.known_as,
                         {.most = [&](TaskNumber) { return rng_.below(4); },
                          .ends_soon = [&](TaskNumber, Token) { return chance(80); }},
                         effects_);
}

std::int64_t Simulation::side_by_side() const {
  return std::ranges::count(live_, Token{}, [](const auto& each) { return each.second.behind; });
}

void Simulation::on_start(const StartAttempt& start) {
  ++figures_.starts;
  const std::string name = fmt::format("task {}", start.task.value);
  if (stopping_) broke(name + " started after the stop");
  if (view(start.task) != State::open) broke(name + " started after it was settled");
  for (const auto& [_, live] : live_)
    if (live.task == start.task) broke(name + " started while it runs");
  if (std::ranges::find(gated_, start.task) != gated_.end()) broke(name + " started at its gate");
  const bool ahead = start.behind.value > 0;
  if (!ahead && options_.parallel > 0 && side_by_side() >= options_.parallel)
    broke("more side by side than allowed");
  const auto process = std::ranges::find_if(
      processes_, [&](const auto& one) { return one->known_as == start.worker; });
  if (process == processes_.end()) return broke(name + " started on an unknown worker");
  if ((*process)->closed) broke(name + " started on a closed worker");
  if (hold_ && hold_->worker == start.worker && behind_hold(start.task))
    backfilled_.push_back(start.token);
  figures_.ahead += ahead ? 1 : 0;
  if (ahead) {
    const auto before = live_.find(start.behind);
    if (before == live_.end() || before->second.worker != start.worker)
      broke(name + " waits for what does not run there");
    if (hold_) broke(name + " was sent ahead during a hold");
  }
  Resources& used = used_[start.worker];
  if (!ahead && (!used.add(row(start.task).task.resources) || !(*process)->total.covers(used)))
    broke("more is used than the worker has");
  live_.emplace(start.token, Live{start.task, start.worker, start.behind});
  batch_.push_back({Change::Kind::started, start.task, start.token});
  if (!chance(4)) (*process)->inbox.push_back({start.task, start.token, start.behind});
}

bool Simulation::behind_hold(TaskNumber task) const {
  const auto rank = [&](TaskNumber number) {
    return std::pair(-rows_[static_cast<std::size_t>(number.value - 1)].task.priority, number);
  };
  return rank(task) > rank(hold_->task);
}

void Simulation::on_settled(const TaskSettled& settled) {
  using To = TaskSettled::To;
  const auto live = live_.find(settled.token);
  if (live == live_.end() || live->second.task != settled.task)
    return broke("an attempt was settled that does not run");
  const auto next =
      std::ranges::find(live_, settled.token, [](const auto& each) { return each.second.behind; });
  if (next != live_.end())  // it takes the room
    next->second.behind = live->second.behind;
  else if (live->second.behind.value == 0 &&
           !used_[live->second.worker].subtract(row(settled.task).task.resources))
    broke("more was given back than taken");
  live_.erase(live);
  if (settled.to == To::again) {
    // An attempt of a lost worker may have failed unheard: that takes no retry.
    const bool own_fault = settled.retry_in > Duration{} && !lost_.contains(settled.token) &&
                           witness_[settled.token] == Verdict::failed;
    return batch_.push_back({Change::Kind::again, settled.task, settled.token, own_fault});
  }
  view(settled.task) = settled.to == To::done ? State::done : State::failed;
  stopping_ = stopping_ || (settled.to == To::failed && options_.stop_on_failure);
  if (settled.to == To::done && plant_ == Plant::lost_completion && chance(2)) return;
  batch_.push_back({settled.to == To::done ? Change::Kind::done : Change::Kind::failed,
                    settled.task, settled.token});
}

/// The scheduler closes a stealer that it has no use for.
void Simulation::free_closed_stealers() {
  for (auto& process : processes_) {
    if (!process->known_as || process->closed || !scheduler_->closed(*process->known_as)) continue;
    const WorkerId worker = *std::exchange(process->known_as, std::nullopt);
    ++figures_.freed;
    process->dead = true;
    if (process->kind != Kind::stealer) broke("a primary worker was to be freed");
    if (!scheduler_->idle(worker)) return broke("a worker that runs something was to be freed");
    scheduler_->left(worker);
  }
}

/// The runner hears that an attempt ended, from any worker and however late.
void Simulation::end(TaskNumber task, Token token, Verdict verdict) {
  if (plant_ == Plant::stale_token && !live_.contains(token)) {
    for (const auto& [other, live] : live_)
      if (live.task == task) token = other;
  }
  const bool stale = !live_.contains(token);
  if (!stale && plant_ == Plant::leaked_resources && chance(2)) {
    (void)used_[live_.at(token).worker].subtract(row(task).task.resources);
    live_.erase(token);
    return;
  }
  const auto before = scheduler_->stale();
  scheduler_->ended(token, verdict, now_, effects_);
  if (stale && !effects_.empty()) broke("a stale token had effects");
  if (scheduler_->stale() - before != (stale ? 1 : 0)) broke("stale ends are miscounted");
  absorb();
}

/// Answers for a gated task: it may start, or it was found in the cache.
void Simulation::answer(bool proceed) {
  if (gated_.empty()) return;
  const TaskNumber task = gated_.back();
  gated_.pop_back();
  if (view(task) != State::open) return;
  if (proceed || chance(70)) return scheduler_->proceed(task, effects_);
  ++figures_.cached;
  view(task) = State::done;
  batch_.push_back({Change::Kind::done, task, {}});
  scheduler_->settle(task, effects_);
}

/// A worker comes (back) with what it still runs and what nobody has acknowledged.
void Simulation::attach(Process& process) {
  const WorkerId worker{++workers_made_};
  process.known_as = worker;
  process.closed = false;
  process.lease_ends = now_ + kLease;
  process.inbox.clear();
  process.cancels.clear();
  std::map<Token, Earlier> earlier;
  for (const auto& [token, task] : process.running) earlier[token] = {task, token};
  for (const auto& launch : process.waiting) earlier[launch.token] = {launch.task, launch.token};
  for (const auto& [token, end] : process.unacknowledged)
    earlier[token] = {end.first, token, end.second};
  std::vector<Earlier> all;
  for (const auto& [_, one] : earlier) all.push_back(one);
  used_[worker] = {};
  scheduler_->joined(
      {.id = worker, .resources = process.total, .kind = process.kind, .earlier = all}, now_,
      effects_);
  note_adopted(all, process);
  absorb();
}

Token Simulation::last_in_line(TaskNumber task, WorkerId worker) {
  for (const auto& [token, live] : live_) {
    const bool alike = row(live.task).task.resources == row(task).task.resources;
    const bool followed =
        std::ranges::any_of(live_, [&](const auto& each) { return each.second.behind == token; });
    if (live.worker == worker && alike && !followed) return token;
  }
  return {};
}

/// One by one, in the order of their tokens: a task may have had two.
void Simulation::note_adopted(const std::vector<Earlier>& earlier, const Process& process) {
  const WorkerId worker = *process.known_as;
  for (const auto& one : earlier) {
    const auto answer = std::ranges::find_if(effects_, [&](const Effect& effect) {
      const auto* settled = std::get_if<TaskSettled>(&effect);
      const auto* cancel = std::get_if<CancelAttempt>(&effect);
      return (settled != nullptr && settled->token == one.token) ||
             (cancel != nullptr && cancel->token == one.token);
    });
    const bool adopted = (answer != effects_.end()) == one.ended.has_value();
    if (!adopted) continue;
    ++figures_.adopted;
    Resources& used = used_[worker];
    Resources with = used;
    (void)with.add(row(one.task).task.resources);
    const bool fits = process.total.covers(with);
    const bool room = options_.parallel <= 0 || side_by_side() < options_.parallel;
    const Token behind = one.ended || (fits && room) ? Token{} : last_in_line(one.task, worker);
    if (behind.value == 0 && !one.ended && !fits) broke("what does not fit was taken over");
    if (behind.value == 0) used = with;
    live_.emplace(one.token, Live{one.task, worker, behind});
    batch_.push_back({Change::Kind::started, one.task, one.token});
    std::erase(gated_, one.task);
    if (!one.ended) continue;
    const auto settled = std::get<TaskSettled>(*answer);
    effects_.erase(answer);
    on_settled(settled);
  }
}

/// What waits behind others never began; whatever else ran on a lost worker failed.
void Simulation::lose_expired() {
  for (auto& process : processes_) {
    if (!process->known_as || now_ <= process->lease_ends) continue;
    ++figures_.losses;
    const WorkerId worker = *process->known_as;
    scheduler_->close(worker);
    process->closed = true;
    std::vector<std::pair<Token, Live>> attempts;
    for (const auto& each : std::views::reverse(live_))
      if (each.second.worker == worker) attempts.push_back(each);
    for (const auto& [token, live] : attempts) {
      lost_.insert(token);
      end(live.task, token,
          live.behind.value > 0 ? Verdict::given_back : Verdict::infrastructure_failure);
      scheduler_->settle_for(live.task, effects_);
      absorb();
    }
    process->known_as.reset();
    if (!scheduler_->idle(worker)) return broke("a lost worker still runs something");
    scheduler_->left(worker);
  }
}

/// Renews the lease, and finds out which launches never arrived.
void Simulation::keepalive(Process& process) {
  if (process.frozen || process.dead) return;
  if (!process.known_as) return attach(process);
  process.lease_ends = now_ + kLease;
  std::vector<std::pair<TaskNumber, Token>> never;
  for (const auto& [token, live] : live_) {
    const bool sent =
        std::ranges::find(process.inbox, token, &Launch::token) != process.inbox.end();
    if (live.worker == process.known_as && !sent && !process.seen.contains(token))
      never.emplace_back(live.task, token);
  }
  for (const auto& [task, token] : never) {
    witness_[token] = Verdict::infrastructure_failure;
    end(task, token, Verdict::infrastructure_failure);
  }
}

void Simulation::commit(bool may_fail) {
  if (may_fail && chance(6)) {  // the store fails: for a moment, or for this runner
    if (chance(50)) crash();
    return;
  }
  for (const auto& change : batch_) record(change);
  batch_.clear();
  acknowledge();
}

/// The store's fence: a completion has to come from the last attempt, and be the only one.
void Simulation::record(const Change& change) {
  Row& of = row(change.task);
  if (of.state != State::open) return broke(fmt::format("task {} ended twice", change.task.value));
  const bool fenced = change.token.value != 0;
  if (change.kind == Change::Kind::started) {
    if (change.token < of.token) broke("an older attempt follows a newer");
    of.token = change.token;
    of.running = true;
    return;
  }
  if (fenced && change.token != of.token) broke("the store refuses what the scheduler accepted");
  of.running = false;
  if (change.kind == Change::Kind::again) {
    of.failures += change.own_fault ? 1 : 0;
    if (of.failures > of.task.retries) broke("more retries than the task had");
    return;
  }
  of.state = change.kind == Change::Kind::done ? State::done : State::failed;
  if (of.state == State::failed) return;
  ++figures_.done;
  if (fenced && (!witness_.contains(change.token) || witness_[change.token] != Verdict::done))
    broke("a completion was recorded of an attempt that has not come to its end");
}

/// Workers may forget what is recorded; some of the acknowledgements are lost.
void Simulation::acknowledge() {
  for (auto& process : processes_)
    std::erase_if(process->unacknowledged, [&](const auto& one) {
      const Row& of = row(one.second.first);
      const bool recorded =
          of.state != State::open || of.token > one.first || (of.token == one.first && !of.running);
      return recorded && chance(80);
    });
}

}  // namespace berth::schedule::testing
