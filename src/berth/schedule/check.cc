// The invariants, counted anew from the tasks, edges and attempts.
#include <algorithm>

#include "berth/schedule/schedule.h"

namespace berth::schedule {

void Scheduler::check() const {
  check_tasks();
  check_queues();
  check_workers();
}

/// A task waits while it has dependencies that are not done, and only then.
void Scheduler::check_tasks() const {
  std::vector<std::int32_t> unmet(tasks_.size());
  std::int64_t open = 0;
  for (const auto& task : tasks_) {
    open += task.place == Place::done || task.place == Place::gone ? 0 : 1;
    BERTH_ASSERT(task.retries >= 0 && task.overtaken <= options_.overtakings);
    if (task.place == Place::done) continue;
    for (auto at = task.dependents; at >= 0; at = edges_[static_cast<std::size_t>(at)].next)
      ++unmet[static_cast<std::size_t>(edges_[static_cast<std::size_t>(at)].dependent.value - 1)];
  }
  BERTH_ASSERT(open == open_);
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const Place place = tasks_[i].place;
    BERTH_ASSERT(tasks_[i].unmet == unmet[i]);
    BERTH_ASSERT((unmet[i] > 0) == (place == Place::waiting) || place == Place::done ||
                 place == Place::gone);
  }
}

/// Each task stands in the queue of its place, and the queues hold nothing else.
void Scheduler::check_queues() const {
  std::size_t ready = 0;
  std::size_t delayed = 0;
  std::vector<std::int64_t> pending(shapes_.size());
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const Entry& task = tasks_[i];
    const TaskNumber number{static_cast<std::int64_t>(i) + 1};
    const auto shape = static_cast<std::size_t>(task.shape);
    if (task.place == Place::ready) {
      BERTH_ASSERT(shapes_[shape].ready.contains(key(number)));
      ++ready;
    } else if (task.place == Place::delayed) {
      BERTH_ASSERT(delayed_.contains({task.due, number}));
      ++delayed;
    }
    if (task.place == Place::delayed || task.place == Place::held) ++pending[shape];
  }
  std::size_t heads = 0;
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    const Shape& shape = shapes_[i];
    BERTH_ASSERT(shape.pending == pending[i]);
    ready -= shape.ready.size();
    if (shape.ready.empty()) continue;
    BERTH_ASSERT(heads_.contains(*shape.ready.begin()));
    ++heads;
  }
  BERTH_ASSERT(ready == 0 && heads == heads_.size() && delayed == delayed_.size());
}

/// What is free and what runs is what the worker has; each live token is of a running task, and no
/// task has two; the kept worker can hold its task once what ran there before has ended.
void Scheduler::check_workers() const {
  std::map<WorkerId, WorkerBooks> sums;
  for (const auto& [worker, books] : workers_) {
    sums.emplace(worker, WorkerBooks{.total = books.free, .free = {}});
    BERTH_ASSERT(books.total.covers(books.free));
  }
  std::set<TaskNumber> running;
  std::set<Token> followed;
  std::size_t ahead = 0;
  for (const auto& [token, attempt] : attempts_) {
    BERTH_ASSERT(token.value <= (options_.epoch << 32) + issued_);
    BERTH_ASSERT(entry(attempt.task).place == Place::running);
    BERTH_ASSERT(running.insert(attempt.task).second);
    WorkerBooks& sum = sums.at(attempt.worker);
    ++sum.running;
    if (attempt.behind.value > 0) {
      const Attempt& before = attempts_.at(attempt.behind);
      BERTH_ASSERT(before.worker == attempt.worker && followed.insert(attempt.behind).second);
      BERTH_ASSERT(entry(before.task).shape == entry(attempt.task).shape);
      ++ahead;
      continue;
    }
    BERTH_ASSERT(sum.total.add(resources(attempt.task)).has_value());
    if (!kept_ || !attempt.beside) continue;
    BERTH_ASSERT(attempt.worker == kept_->worker);
    BERTH_ASSERT(sum.free.add(resources(attempt.task)).has_value());
  }
  BERTH_ASSERT(ahead == ahead_);
  BERTH_ASSERT(static_cast<std::size_t>(
                   std::ranges::count(tasks_, Place::running, &Entry::place)) == attempts_.size());
  for (const auto& [worker, books] : workers_)
    BERTH_ASSERT(sums.at(worker).total == books.total && sums.at(worker).running == books.running);
  if (!kept_) return;
  BERTH_ASSERT(entry(kept_->task).place == Place::ready && !workers_.at(kept_->worker).closed);
  Resources sum = sums.at(kept_->worker).free;
  BERTH_ASSERT(sum.add(kept_->spare).has_value() && sum.add(resources(kept_->task)).has_value());
  BERTH_ASSERT(sum == workers_.at(kept_->worker).total);
}

}  // namespace berth::schedule
