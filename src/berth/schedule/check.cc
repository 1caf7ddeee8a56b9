// The invariants, recounted from the tasks and attempts.
#include <algorithm>

#include "berth/schedule/schedule.h"

namespace berth::schedule {

void Scheduler::check() const {
  check_queues();
  check_workers();
}

/// Each task is in the queue of its place, and the queues hold nothing else.
void Scheduler::check_queues() const {
  std::size_t ready = 0;
  std::size_t delayed = 0;
  std::int64_t open = 0;
  std::vector<std::int64_t> pending(classes_.size());
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const Entry& task = tasks_[i];
    const TaskNumber number{static_cast<std::int64_t>(i) + 1};
    BERTH_ASSERT(task.retries >= 0 && task.passed <= options_.backfill_limit);
    open += task.place == Place::settled ? 0 : 1;
    if (task.place == Place::ready) {
      BERTH_ASSERT(class_of(number).ready.contains(key(number)));
      ++ready;
    } else if (task.place == Place::delayed) {
      BERTH_ASSERT(delayed_.contains({task.due, number}));
      ++delayed;
    }
    if (task.place == Place::delayed || task.place == Place::gated)
      ++pending[static_cast<std::size_t>(task.resource_class)];
  }
  std::size_t heads = 0;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    const ResourceClass& of = classes_[i];
    BERTH_ASSERT(of.pending == pending[i]);
    ready -= of.ready.size();
    if (of.ready.empty()) continue;
    BERTH_ASSERT(heads_.contains(*of.ready.begin()));
    ++heads;
  }
  BERTH_ASSERT(ready == 0 && heads == heads_.size() && delayed == delayed_.size());
  BERTH_ASSERT(open == open_);
}

/// A worker's free resources and those of its attempts add up to its total. Each live token belongs
/// to a running task, and no task has two. The held worker can hold its task once the attempts that
/// ran there before have ended.
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
      BERTH_ASSERT(entry(before.task).resource_class == entry(attempt.task).resource_class);
      ++ahead;
      continue;
    }
    BERTH_ASSERT(sum.total.add(resources(attempt.task)).has_value());
    if (!hold_ || !attempt.backfills) continue;
    BERTH_ASSERT(attempt.worker == hold_->worker);
    BERTH_ASSERT(sum.free.add(resources(attempt.task)).has_value());
  }
  BERTH_ASSERT(ahead == ahead_);
  BERTH_ASSERT(static_cast<std::size_t>(
                   std::ranges::count(tasks_, Place::running, &Entry::place)) == attempts_.size());
  for (const auto& [worker, books] : workers_)
    BERTH_ASSERT(sums.at(worker).total == books.total && sums.at(worker).running == books.running);
  if (!hold_) return;
  BERTH_ASSERT(entry(hold_->task).place == Place::ready && !workers_.at(hold_->worker).closed);
  Resources sum = sums.at(hold_->worker).free;
  BERTH_ASSERT(sum.add(hold_->spare).has_value() && sum.add(resources(hold_->task)).has_value());
  BERTH_ASSERT(sum == workers_.at(hold_->worker).total);
}

}  // namespace berth::schedule
