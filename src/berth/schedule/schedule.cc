#include "berth/schedule/schedule.h"

#include <algorithm>

#include "berth/base/rng.h"

namespace berth::schedule {

Scheduler::Scheduler(std::vector<Task> tasks, Options options) : options_(std::move(options)) {
  tasks_.reserve(tasks.size());
  for (auto& task : tasks) {
    BERTH_ASSERT(task.number.value == static_cast<std::int64_t>(tasks_.size()) + 1);
    const bool open = task.open;
    if (open) {
      ready_.emplace_hint(ready_.end(), -task.priority, task.number.value);
      ++open_;
    }
    tasks_.push_back({std::move(task), open ? Place::ready : Place::settled, 0});
  }
}

bool Scheduler::room() const {
  return options_.parallel <= 0 || static_cast<std::int64_t>(attempts_.size()) < options_.parallel;
}

void Scheduler::assign(std::vector<Effect>& effects) {
  if (stopping_ || halted_) return;
  while (!ready_.empty() && room()) {
    Entry& first = entry({ready_.begin()->second});
    const auto fitting = std::ranges::find_if(workers_, [&](const auto& worker) {
      return !worker.second.closed && worker.second.free.covers(first.task.resources);
    });
    if (fitting == workers_.end()) return;
    ready_.erase(ready_.begin());
    start(first, fitting->first, fitting->second, effects);
  }
}

void Scheduler::start(Entry& entry, WorkerId worker, WorkerBooks& books,
                      std::vector<Effect>& effects) {
  BERTH_ASSERT(books.free.subtract(entry.task.resources).has_value());
  ++books.running;
  ++entry.attempts;
  entry.place = Place::running;
  const Token token{(options_.epoch << 32) + ++issued_};
  attempts_.emplace(token, Attempt{entry.task.number, worker});
  effects.emplace_back(StartAttempt{entry.task.number, token, worker});
}

void Scheduler::joined(WorkerId worker, const Resources& resources, Mono now,
                       std::vector<Effect>& effects) {
  const bool added =
      workers_.emplace(worker, WorkerBooks{.total = resources, .free = resources}).second;
  BERTH_ASSERT(added);
  tick(now, effects);
}

void Scheduler::close(WorkerId worker) {
  workers_.at(worker).closed = true;
}

void Scheduler::left(WorkerId worker) {
  BERTH_ASSERT(idle(worker));
  workers_.erase(worker);
}

void Scheduler::ended(Token token, Verdict verdict, Mono now, std::vector<Effect>& effects) {
  const auto found = attempts_.find(token);
  if (found == attempts_.end()) return;
  const Attempt attempt = found->second;
  attempts_.erase(found);
  Entry& ended = entry(attempt.task);
  WorkerBooks& books = workers_.at(attempt.worker);
  BERTH_ASSERT(books.free.add(ended.task.resources).has_value());
  --books.running;

  TaskSettled settled{attempt.task, token, TaskSettled::To::done};
  if (verdict == Verdict::stopped || verdict == Verdict::not_its_fault)
    settled.to = TaskSettled::To::stopped;
  const bool blameless = verdict == Verdict::not_its_fault;
  const bool budget = verdict == Verdict::failed && ended.task.retries > 0;
  if ((blameless || budget) && !stopping_ && !halted_) {
    settled.to = TaskSettled::To::again;
    settled.retry_in = backoff(ended);
    if (budget) --ended.task.retries;
    ended.place = Place::delayed;
    delayed_.emplace(now + settled.retry_in, attempt.task);
  } else {
    if (verdict == Verdict::failed || verdict == Verdict::hopeless) {
      settled.to = TaskSettled::To::failed;
      halted_ = halted_ || options_.stop_on_failure;
    }
    ended.place = Place::settled;
    --open_;
  }
  effects.emplace_back(settled);
  tick(now, effects);
}

void Scheduler::tick(Mono now, std::vector<Effect>& effects) {
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    Entry& due = entry(delayed_.begin()->second);
    delayed_.erase(delayed_.begin());
    due.place = Place::ready;
    ready_.emplace(-due.task.priority, due.task.number.value);
  }
  assign(effects);
}

void Scheduler::stop(std::vector<Effect>& effects) {
  stopping_ = true;
  for (auto& [token, attempt] : attempts_) {
    if (std::exchange(attempt.cancelled, true)) continue;
    effects.emplace_back(CancelAttempt{token, attempt.worker});
  }
}

std::optional<Requirements> Scheduler::need() const {
  if (stopping_ || halted_ || ready_.empty() || !room()) return std::nullopt;
  const auto& first = tasks_[static_cast<std::size_t>(ready_.begin()->second - 1)];
  auto width = static_cast<std::int64_t>(ready_.size());
  if (options_.parallel > 0)
    width = std::min(width, options_.parallel - static_cast<std::int64_t>(attempts_.size()));
  return Requirements{first.task.resources, width};
}

bool Scheduler::idle(WorkerId worker) const {
  return workers_.at(worker).running == 0;
}

std::optional<Mono> Scheduler::next_tick() const {
  if (delayed_.empty() || stopping_ || halted_) return std::nullopt;
  return delayed_.begin()->first;
}

Duration Scheduler::backoff(const Entry& entry) const {
  const int doublings = std::min(entry.attempts - 1, 20);
  const Duration full =
      std::min<Duration>(options_.backoff_first * (1LL << doublings), options_.backoff_most);
  Rng rng(mix(options_.seed ^ mix(static_cast<std::uint64_t>(entry.task.number.value))) +
          static_cast<std::uint64_t>(entry.attempts));
  return std::chrono::duration_cast<Duration>(full * (0.5 + rng.uniform()));
}

void Scheduler::check() const {
  std::int64_t open = 0;
  std::size_t running = 0;
  for (const auto& entry : tasks_) {
    if (entry.place != Place::settled) ++open;
    if (entry.place == Place::running) ++running;
  }
  BERTH_ASSERT(open == open_);
  BERTH_ASSERT(running == attempts_.size());
  BERTH_ASSERT(ready_.size() + delayed_.size() + running == static_cast<std::size_t>(open));
  BERTH_ASSERT(options_.parallel <= 0 || running <= static_cast<std::size_t>(options_.parallel));
  for (const auto& [worker, books] : workers_) {
    Resources sum = books.free;
    std::int64_t count = 0;
    for (const auto& [token, attempt] : attempts_) {
      if (attempt.worker != worker) continue;
      const auto& task = tasks_[static_cast<std::size_t>(attempt.task.value - 1)].task;
      BERTH_ASSERT(sum.add(task.resources).has_value());
      ++count;
    }
    BERTH_ASSERT(sum == books.total && count == books.running);
  }
}

}  // namespace berth::schedule
