// What each event changes in the books. assign.cc decides who then gets what.
#include "berth/schedule/schedule.h"

#include <algorithm>

#include "berth/base/backoff.h"
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

std::int32_t Scheduler::class_number(const Resources& resources) {
  const auto next = static_cast<std::int32_t>(classes_.size());
  const auto [found, added] = class_numbers_.try_emplace(resources, next);
  if (added) classes_.push_back({.resources = resources, .ready = {}, .pending = 0});
  return found->second;
}

/// Only this function moves a task from one queue to another.
void Scheduler::move(TaskNumber task, Place to) {
  Entry& moved = entry(task);
  const Place from = std::exchange(moved.place, to);
  if (from == Place::ready) set_ready(task, false);
  if (to == Place::ready) set_ready(task, true);
  if (from == Place::delayed) delayed_.erase({moved.due, task});
  if (to == Place::delayed) delayed_.emplace(moved.due, task);
  const auto pending = [](Place place) {
    return place == Place::delayed || place == Place::gated ? 1 : 0;
  };
  class_of(task).pending += pending(to) - pending(from);
  open_ += (to == Place::settled ? 0 : 1) - (from == Place::settled ? 0 : 1);
}

void Scheduler::set_ready(TaskNumber task, bool ready) {
  auto& queue = class_of(task).ready;
  const ReadyKey mine = key(task);
  const bool heads = queue.empty() || mine <= *queue.begin();
  if (heads && !queue.empty()) heads_.erase(*queue.begin());
  if (ready)
    queue.emplace_hint(queue.end(), mine);
  else
    queue.erase(mine);
  if (heads && !queue.empty()) heads_.insert(*queue.begin());
  if (!ready && hold_ && hold_->task == task) hold_.reset();
}

void Scheduler::add(std::span<const Task> tasks, std::vector<Effect>& effects) {
  if (tasks_.empty()) tasks_.reserve(tasks.size());
  for (const auto& task : tasks) {
    BERTH_ASSERT(task.number.value == static_cast<std::int64_t>(tasks_.size()) + 1);
    Entry& added = tasks_.emplace_back();
    added.priority = task.priority;
    added.resource_class = class_number(task.resources);
    added.retries = task.retries;
    added.tolerated = task.tolerated;
    added.fence = task.fence;
    if (!task.settled) move(task.number, task.gated ? Place::gated : Place::ready);
  }
  after_event(effects);
}

void Scheduler::proceed(TaskNumber task, std::vector<Effect>& effects) {
  if (entry(task).place != Place::gated) return;
  move(task, Place::ready);
  after_event(effects);
}

void Scheduler::resize(TaskNumber task, const Resources& resources) {
  const Place place = entry(task).place;
  BERTH_ASSERT(place != Place::running);
  move(task, Place::settled);
  entry(task).resource_class = class_number(resources);
  move(task, place);
}

void Scheduler::settle(TaskNumber task, std::vector<Effect>& effects) {
  const Place place = entry(task).place;
  if (place == Place::running || place == Place::settled) return;
  move(task, Place::settled);
  after_event(effects);
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

/// Takes over an attempt of an earlier runner. False if its task went on without the attempt.
bool Scheduler::adopt(const Earlier& earlier, WorkerId worker, Mono now,
                      std::vector<Effect>& effects) {
  const auto& [task, token, verdict, ends] = earlier;
  const Place place = entry(task).place;
  const bool waits = place == Place::gated || place == Place::ready || place == Place::delayed;
  if (!waits || (token < entry(task).fence && !ends)) return false;
  if (verdict) {
    move(task, Place::running);
    // The earlier runner stopped it; this runner resumes the task.
    const bool stopped = *verdict == Verdict::stopped;
    conclude(task, token, stopped ? Verdict::infrastructure_failure : *verdict, now, effects);
    return true;
  }
  if (!starting()) return false;
  const bool fits = workers_.at(worker).free.covers(resources(task));
  // It was sent ahead, or it has the room of an attempt whose end has not been reported yet.
  const Token behind = fits && room() ? Token{} : last_in_line(task, worker);
  if (behind.value > 0)
    queue(task, token, worker, behind);
  else if (fits)
    occupy(task, token, worker);
  return fits || behind.value > 0;
}

void Scheduler::close(WorkerId worker) {
  workers_.at(worker).closed = true;
  if (hold_ && hold_->worker == worker) hold_.reset();
}

void Scheduler::left(WorkerId worker) {
  BERTH_ASSERT(idle(worker));
  close(worker);
  workers_.erase(worker);
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

/// Frees what the attempt held, or hands it to the attempt behind, and removes the attempt: its
/// token is stale from here on.
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
    next->second.backfills = attempt.backfills;
    return attempt.task;
  }
  if (waited) return attempt.task;
  BERTH_ASSERT(books.free.add(resources(attempt.task)).has_value());
  if (attempt.backfills && hold_)
    BERTH_ASSERT(hold_->spare.add(resources(attempt.task)).has_value());
  return attempt.task;
}

void Scheduler::conclude(TaskNumber task, Token token, Verdict verdict, Mono now,
                         std::vector<Effect>& effects) {
  Entry& ended = entry(task);
  ended.fence = std::max(ended.fence, Token{token.value + 1});
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
    ++ended.pauses;
    settled.retry_in = backoff(task);
    ended.due = now + settled.retry_in;
    settled.to = TaskSettled::To::again;
    effects.emplace_back(settled);
    return move(task, Place::delayed);
  }
  // What could be tried again, but for the stop, is tried again after a resume.
  const bool failed = (verdict == Verdict::failed && !budget) || verdict == Verdict::permanent ||
                      (infrastructure && !again);
  if (failed && options_.stop_on_failure && !ended.tolerated)
    halted_ = ++failures_ > options_.allowed_failures || halted_;
  settled.to = verdict == Verdict::done ? TaskSettled::To::done
               : failed                 ? TaskSettled::To::failed
                                        : TaskSettled::To::stopped;
  effects.emplace_back(settled);
  move(task, Place::settled);
}

void Scheduler::tick(Mono now, std::vector<Effect>& effects) {
  now_ = now;
  while (!delayed_.empty() && delayed_.begin()->first <= now)
    move(delayed_.begin()->second, Place::ready);
  after_event(effects);
}

void Scheduler::end_recovery(Mono now, std::vector<Effect>& effects) {
  recovering_ = false;
  tick(now, effects);
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
  Rng rng(mix(options_.seed ^ mix(static_cast<std::uint64_t>(task.value))) +
          static_cast<std::uint64_t>(pauses));
  return Backoff{options_.backoff_first, options_.backoff_most}.pause(pauses, rng.next());
}

}  // namespace berth::schedule
