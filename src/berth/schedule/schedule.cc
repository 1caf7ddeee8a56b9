// The books: what each event changes. Who then gets what is assign.cc.
#include "berth/schedule/schedule.h"

#include <algorithm>
#include <limits>

#include "berth/base/rng.h"

namespace berth::schedule {
namespace {

constexpr int kBriefCounts = 16;  // as many failures of long attempts as one of a brief one

}  // namespace

Scheduler::Scheduler(Options options) : options_(options) {}

std::size_t Scheduler::HashResources::operator()(const Resources& resources) const {
  std::uint64_t hash = 0;
  resources.each([&](std::string_view resource, std::int64_t amount) {
    hash = mix(hash ^ std::hash<std::string_view>{}(resource)) ^ static_cast<std::uint64_t>(amount);
  });
  return mix(hash);
}

std::int32_t Scheduler::shape_of(const Resources& resources) {
  const auto next = static_cast<std::int32_t>(shapes_.size());
  const auto [found, added] = shape_numbers_.try_emplace(resources, next);
  if (added) shapes_.push_back({.resources = resources, .ready = {}, .pending = 0});
  return found->second;
}

/// The one place that takes a task from one queue to another.
void Scheduler::move(TaskNumber task, Place to) {
  Entry& moved = entry(task);
  const Place from = std::exchange(moved.place, to);
  if (from == Place::ready) set_ready(task, false);
  if (to == Place::ready) set_ready(task, true);
  if (from == Place::delayed) delayed_.erase({moved.due, task});
  if (to == Place::delayed) delayed_.emplace(moved.due, task);
  const auto pending = [](Place place) {
    return place == Place::delayed || place == Place::held ? 1 : 0;
  };
  shapes_[static_cast<std::size_t>(moved.shape)].pending += pending(to) - pending(from);
  const auto open = [](Place place) {
    return place != Place::done && place != Place::gone ? 1 : 0;
  };
  open_ += open(to) - open(from);
}

void Scheduler::set_ready(TaskNumber task, bool ready) {
  auto& queue = shapes_[static_cast<std::size_t>(entry(task).shape)].ready;
  const ReadyKey mine = key(task);
  const bool heads = queue.empty() || mine <= *queue.begin();
  if (heads && !queue.empty()) heads_.erase(*queue.begin());
  if (ready)
    queue.emplace_hint(queue.end(), mine);
  else
    queue.erase(mine);
  if (heads && !queue.empty()) heads_.insert(*queue.begin());
  if (!ready && kept_ && kept_->task == task) kept_.reset();
}

void Scheduler::add(std::span<const Task> tasks, std::vector<Effect>& effects) {
  if (tasks_.empty()) tasks_.reserve(tasks.size());
  for (const auto& task : tasks) {
    BERTH_ASSERT(task.number.value == static_cast<std::int64_t>(tasks_.size()) + 1);
    Entry& added = tasks_.emplace_back();
    added.priority = task.priority;
    added.shape = shape_of(task.resources);
    added.retries = task.retries;
    added.fence = task.fence;
    added.asks = task.asks;
    ++open_;
    for (const auto dependency : task.after) BERTH_ASSERT(dependency < task.number);
    if (task.state == State::open) {
      link(task.number, task.after, effects);
    } else {
      added.because = task.number;
      move(task.number, task.state == State::done ? Place::done : Place::gone);
    }
  }
  after_event(effects);
}

/// Makes the task wait for those of `after` that are not done yet.
void Scheduler::link(TaskNumber task, std::span<const TaskNumber> after,
                     std::vector<Effect>& effects) {
  for (const auto dependency : after) {
    BERTH_ASSERT(dependency != task);
    Entry& wanted = entry(dependency);
    if (wanted.place == Place::gone) return skip(task, wanted.because, effects);
    if (wanted.place == Place::done) continue;
    BERTH_ASSERT(edges_.size() < std::numeric_limits<std::int32_t>::max());
    edges_.push_back({task, wanted.dependents});
    wanted.dependents = static_cast<std::int32_t>(edges_.size() - 1);
    ++entry(task).unmet;
  }
  if (entry(task).unmet == 0) unblock(task, effects);
}

void Scheduler::unblock(TaskNumber task, std::vector<Effect>& effects) {
  const bool asks = entry(task).asks;
  move(task, asks ? Place::held : Place::ready);
  if (asks) effects.emplace_back(Unblocked{task});
}

void Scheduler::proceed(TaskNumber task, std::vector<Effect>& effects) {
  if (entry(task).place != Place::held) return;
  move(task, Place::ready);
  after_event(effects);
}

void Scheduler::wait_for(TaskNumber task, std::span<const TaskNumber> more,
                         std::vector<Effect>& effects) {
  if (entry(task).place != Place::held) return;
  move(task, Place::waiting);
  link(task, more, effects);
  after_event(effects);
}

void Scheduler::settle(TaskNumber task, State state, std::vector<Effect>& effects) {
  BERTH_ASSERT(state != State::open);
  const Place place = entry(task).place;
  if (place == Place::running || place == Place::done || place == Place::gone) return;
  if (state == State::done)
    finish(task, effects);
  else
    give_up(task, effects);
  after_event(effects);
}

void Scheduler::finish(TaskNumber task, std::vector<Effect>& effects) {
  move(task, Place::done);
  for (auto at = entry(task).dependents; at >= 0;) {
    const Edge edge = edges_[static_cast<std::size_t>(at)];
    at = edge.next;
    Entry& dependent = entry(edge.dependent);
    --dependent.unmet;
    if (dependent.unmet == 0 && dependent.place == Place::waiting) unblock(edge.dependent, effects);
  }
}

void Scheduler::give_up(TaskNumber task, std::vector<Effect>& effects) {
  entry(task).because = task;
  move(task, Place::gone);
  std::vector<TaskNumber> spread{task};
  while (!spread.empty()) {
    auto at = entry(spread.back()).dependents;
    spread.pop_back();
    for (; at >= 0; at = edges_[static_cast<std::size_t>(at)].next) {
      const TaskNumber dependent = edges_[static_cast<std::size_t>(at)].dependent;
      if (entry(dependent).place != Place::waiting) continue;
      skip(dependent, task, effects);
      spread.push_back(dependent);
    }
  }
}

void Scheduler::skip(TaskNumber task, TaskNumber because, std::vector<Effect>& effects) {
  entry(task).because = because;
  move(task, Place::gone);
  effects.emplace_back(TaskSettled{task, {}, TaskSettled::To::skipped, {}, because});
}

void Scheduler::joined(const Worker& worker, Mono now, std::vector<Effect>& effects) {
  now_ = now;
  const bool added =
      workers_
          .emplace(worker.id,
                   WorkerBooks{.total = worker.resources,
                               .free = worker.resources,
                               .kind = worker.kind,
                               .machine = worker.machine > 0 ? worker.machine : -worker.id.value})
          .second;
  BERTH_ASSERT(added);
  for (const auto& earlier : worker.earlier) {
    if (adopt(earlier, worker.id, now, effects)) continue;
    if (earlier.ended)
      ++stale_;
    else
      effects.emplace_back(CancelAttempt{earlier.token, worker.id});
  }
  tick(now, effects);
}

/// Takes over an attempt of an earlier runner, unless its task went on without it.
bool Scheduler::adopt(const Earlier& earlier, WorkerId worker, Mono now,
                      std::vector<Effect>& effects) {
  const auto& [task, token, verdict] = earlier;
  const Place place = entry(task).place;
  const bool waits = place == Place::held || place == Place::ready || place == Place::delayed;
  if (!waits || token < entry(task).fence) return false;
  if (verdict) {
    move(task, Place::running);
    // The stop was the earlier runner's; this one is the resume.
    const bool stopped = *verdict == Verdict::stopped;
    conclude(task, token, stopped ? Verdict::infrastructure_failure : *verdict, now, effects);
    return true;
  }
  if (!starting()) return false;
  const bool fits = workers_.at(worker).free.covers(resources(task));
  // It was sent ahead; or it has the room of one whose end is still to be heard.
  const Token behind = fits && room() ? Token{} : last_in_line(task, worker);
  if (behind.value > 0)
    queue(task, token, worker, behind);
  else if (fits)
    occupy(task, token, worker);
  return fits || behind.value > 0;
}

void Scheduler::close(WorkerId worker) {
  workers_.at(worker).closed = true;
  if (kept_ && kept_->worker == worker) kept_.reset();
}

void Scheduler::left(WorkerId worker) {
  BERTH_ASSERT(idle(worker));
  close(worker);
  workers_.erase(worker);
}

void Scheduler::lost(WorkerId worker, Mono now, std::vector<Effect>& effects) {
  if (!workers_.contains(worker)) return;
  close(worker);
  for (auto at = attempts_.begin(); at != attempts_.end();) {
    const auto found = at++;
    if (found->second.worker != worker) continue;
    const Token token = found->first;
    conclude(release(found), token, Verdict::infrastructure_failure, std::nullopt, effects);
  }
  left(worker);
  tick(now, effects);
}

void Scheduler::ended(Token token, Verdict verdict, Mono now, std::vector<Effect>& effects) {
  const auto found = attempts_.find(token);
  if (found == attempts_.end()) {
    ++stale_;
    return;
  }
  const TaskNumber task = found->second.task;
  const std::int64_t machine = workers_.at(found->second.worker).machine;
  if (verdict == Verdict::infrastructure_failure)
    entry(task).infrastructure_failures +=
        now - found->second.began < options_.long_attempt ? kBriefCounts : 1;
  conclude(release(found), token, verdict, now, effects);
  failed_on_.erase(task);
  if (entry(task).place == Place::delayed)
    failed_on_[task] = {machine,
                        entry(task).due + (machine > 0 ? options_.seeks_elsewhere : Duration(0))};
  tick(now, effects);
}

/// Gives back what the attempt held, or hands it to the one behind, and forgets it: its token is
/// stale from here on.
TaskNumber Scheduler::release(std::map<Token, Attempt>::iterator found) {
  const Attempt attempt = found->second;
  const Token token = found->first;
  const auto after = attempts_.erase(found);
  WorkerBooks& books = workers_.at(attempt.worker);
  --books.running;
  const bool waited = attempt.behind.value > 0;
  const auto next =
      ahead_ == 0 ? attempts_.end() : std::find_if(after, attempts_.end(), [&](const auto& each) {
        return each.second.behind == token;
      });
  if (waited || next != attempts_.end()) --ahead_;
  if (next != attempts_.end()) {
    next->second.behind = attempt.behind;
    next->second.began = now_;
    next->second.beside = attempt.beside;
    return attempt.task;
  }
  if (waited) return attempt.task;
  BERTH_ASSERT(books.free.add(resources(attempt.task)).has_value());
  if (attempt.beside && kept_) BERTH_ASSERT(kept_->spare.add(resources(attempt.task)).has_value());
  return attempt.task;
}

/// Without `now` what is tried again is ready at once: nobody gains by waiting.
void Scheduler::conclude(TaskNumber task, Token token, Verdict verdict, std::optional<Mono> now,
                         std::vector<Effect>& effects) {
  Entry& ended = entry(task);
  ended.fence = {token.value + 1};
  TaskSettled settled{.task = task, .token = token};
  if (verdict == Verdict::given_back && starting()) {
    settled.to = TaskSettled::To::again;
    effects.emplace_back(settled);
    return move(task, Place::ready);
  }
  const bool infrastructure = verdict == Verdict::infrastructure_failure;
  if (!infrastructure) ended.infrastructure_failures = 0;
  const bool again = infrastructure && ended.infrastructure_failures <
                                           options_.infrastructure_failures * kBriefCounts;
  const bool budget = verdict == Verdict::failed && ended.retries > 0;
  if ((again || budget) && starting()) {
    if (budget) --ended.retries;
    if (now) {
      ++ended.pauses;
      settled.retry_in = backoff(task);
      ended.due = *now + settled.retry_in;
    }
    settled.to = TaskSettled::To::again;
    effects.emplace_back(settled);
    return move(task, now ? Place::delayed : Place::ready);
  }
  if (verdict == Verdict::done) {
    effects.emplace_back(settled);
    return finish(task, effects);
  }
  const bool failed =
      verdict == Verdict::failed || verdict == Verdict::permanent || (infrastructure && !again);
  halted_ = halted_ || (failed && options_.stop_on_failure);
  settled.to = failed ? TaskSettled::To::failed : TaskSettled::To::stopped;
  effects.emplace_back(settled);
  if (failed || starting()) return give_up(task, effects);
  ended.because = task;  // what comes after it stays open, as it does: a resume goes on with both
  move(task, Place::gone);
}

void Scheduler::tick(Mono now, std::vector<Effect>& effects) {
  now_ = now;
  while (!delayed_.empty() && delayed_.begin()->first <= now)
    move(delayed_.begin()->second, Place::ready);
  after_event(effects);
}

void Scheduler::stop(std::vector<Effect>& effects) {
  stopping_ = true;
  for (auto& [token, attempt] : attempts_) {
    if (std::exchange(attempt.cancelled, true)) continue;
    effects.emplace_back(CancelAttempt{token, attempt.worker});
  }
  after_event(effects);
}

std::optional<Mono> Scheduler::next_tick() const {
  std::optional<Mono> next;
  if (!starting()) return next;
  if (!delayed_.empty()) next = delayed_.begin()->first;
  for (const auto& [task, failure] : failed_on_)
    if (avoided(task) != 0 && (!next || failure.avoided_until < *next))
      next = failure.avoided_until;
  return next;
}

Duration Scheduler::backoff(TaskNumber task) const {
  const int pauses = entry(task).pauses;
  const int doublings = std::min(pauses - 1, 20);
  const Duration full =
      std::min<Duration>(options_.backoff_first * (1LL << doublings), options_.backoff_most);
  Rng rng(mix(options_.seed ^ mix(static_cast<std::uint64_t>(task.value))) +
          static_cast<std::uint64_t>(pauses));
  return std::chrono::duration_cast<Duration>(full * (0.5 + rng.uniform()));
}

}  // namespace berth::schedule
