// Which ready task starts on which worker, and which worker is held for a task too large to fit
// now.
#include <algorithm>
#include <tuple>

#include "berth/schedule/schedule.h"

namespace berth::schedule {

bool Scheduler::room() const {
  return options_.parallel <= 0 || static_cast<std::int64_t>(running()) < options_.parallel;
}

/// Goes down the queue, class by class, and starts what fits. A start frees nothing, so a class
/// that fitted nowhere need not be looked at again.
void Scheduler::assign(std::vector<Effect>& effects) {
  std::optional<TaskNumber> head;  // the first that fits nowhere now but fits an empty worker
  for (auto at = heads_.begin(); at != heads_.end() && room();) {
    const ReadyKey first = *at;
    const auto [task, worker] = choose_of(class_of({first.second}));
    if (worker == workers_.end()) {
      if (!head && avoided(task) == 0 && some_worker_could_hold(task)) {
        head = task;
        if (entry(task).passed >= options_.backfill_limit) hold_worker_for(task);
      }
      ++at;
      continue;
    }
    const Token token = next_token();
    occupy(task, token, worker->first);
    effects.emplace_back(StartAttempt{task, token, worker->first});
    if (head) count_backfill(*head, worker->second);
    at = heads_.lower_bound(first);  // itself, where one behind it started
  }
}

/// The first task of a resource class that can start, and its worker. If none can, it is the first
/// that avoids no machine (else the first of all), without a worker. Tasks that avoid a machine are
/// passed over until one that avoids none is reached.
std::pair<TaskNumber, Scheduler::Workers::iterator> Scheduler::choose_of(const ResourceClass& of) {
  for (const auto& [_, number] : of.ready) {
    const auto worker = choose({number});
    if (worker != workers_.end() || avoided({number}) == 0) return {{number}, worker};
  }
  return {{of.ready.begin()->second}, workers_.end()};
}

std::int64_t Scheduler::avoided(TaskNumber task) const {
  const auto failed = failed_on_.find(task);
  const bool avoids = failed != failed_on_.end() && entry(task).place == Place::ready &&
                      now_ < failed->second.avoided_until;
  return avoids ? failed->second.machine : 0;
}

void Scheduler::settle_for(TaskNumber task, std::vector<Effect>& effects) {
  if (const auto failed = failed_on_.find(task); failed != failed_on_.end())
    failed->second.avoided_until = {};
  after_event(effects);
}

/// The best worker on which the task fits: one on another machine than that of its last failure
/// where there is a choice; then a primary worker before a stealer, so that stealers become idle;
/// then the worker with the fewest GPUs free, so that tasks without GPUs leave them to others.
Scheduler::Workers::iterator Scheduler::choose(TaskNumber task) {
  const Resources& wanted = resources(task);
  const bool behind = hold_ && key(task) > key(hold_->task);
  const auto failed = failed_on_.find(task);
  const std::int64_t avoids = avoided(task);
  const auto rank = [&](const Workers::value_type& worker) {
    const bool again =
        failed != failed_on_.end() && failed->second.machine == worker.second.machine;
    return std::tuple(again, worker.second.kind, worker.second.free.get(Known::gpu));
  };
  auto best = workers_.end();
  for (auto at = workers_.begin(); at != workers_.end(); ++at) {
    if (at->second.closed || !at->second.free.covers(wanted)) continue;
    if (avoids != 0 && at->second.machine == avoids) continue;
    if (behind && at->first == hold_->worker && !hold_->spare.covers(wanted)) continue;
    if (best == workers_.end() || rank(*at) < rank(*best)) best = at;
  }
  return best;
}

/// Whether one of the present workers could hold the task once it is empty.
bool Scheduler::some_worker_could_hold(TaskNumber task) const {
  return std::ranges::any_of(workers_, [&](const auto& worker) {
    return !worker.second.closed && worker.second.total.covers(resources(task));
  });
}

void Scheduler::occupy(TaskNumber task, Token token, WorkerId worker) {
  const Resources& taken = resources(task);
  const bool backfills = hold_ && hold_->worker == worker && key(task) > key(hold_->task) &&
                         hold_->spare.covers(taken);
  if (backfills) BERTH_ASSERT(hold_->spare.subtract(taken).has_value());
  WorkerBooks& books = workers_.at(worker);
  BERTH_ASSERT(books.free.subtract(taken).has_value());
  ++books.running;
  move(task, Place::running);
  attempts_.emplace(token,
                    Attempt{.task = task, .worker = worker, .began = now_, .backfills = backfills});
}

void Scheduler::queue(TaskNumber task, Token token, WorkerId worker, Token behind) {
  move(task, Place::running);
  ++workers_.at(worker).running;
  ++ahead_;
  attempts_.emplace(token,
                    Attempt{.task = task, .worker = worker, .began = now_, .behind = behind});
}

/// The first attempt on the worker that is of the task's resource class and that no other attempt
/// waits behind; 0: none.
Token Scheduler::last_in_line(TaskNumber task, WorkerId worker) const {
  std::set<Token> followed;
  for (const auto& [_, attempt] : attempts_) followed.insert(attempt.behind);
  for (const auto& [token, attempt] : attempts_)
    if (attempt.worker == worker &&
        entry(attempt.task).resource_class == entry(task).resource_class &&
        !followed.contains(token))
      return token;
  return {};
}

void Scheduler::send_ahead(WorkerId worker, const AheadPolicy& policy,
                           std::vector<Effect>& effects) {
  const bool closed = workers_.at(worker).closed;
  if (!starting() || options_.stop_on_failure || hold_ || closed || heads_.empty()) return;
  struct Lane {  // an attempt that runs, and those that wait behind it
    Token last;
    bool ends_soon = false;
    std::size_t waiting = 0;
  };
  std::map<std::int32_t, std::vector<Lane>> lanes;  // by resource class
  for (const auto& [token, attempt] : attempts_) {
    if (attempt.worker != worker) continue;
    auto& alike = lanes[entry(attempt.task).resource_class];
    if (attempt.behind.value == 0) {
      alike.push_back({.last = token, .ends_soon = policy.ends_soon(attempt.task, token)});
      continue;
    }
    const auto lane = std::ranges::find(alike, attempt.behind, &Lane::last);
    lane->last = token;
    ++lane->waiting;
  }
  for (auto& [_, alike] : lanes)
    std::erase_if(alike, [](const Lane& lane) { return !lane.ends_soon; });
  while (!heads_.empty()) {
    const TaskNumber task{heads_.begin()->second};
    auto& alike = lanes[entry(task).resource_class];
    const auto lane = std::ranges::min_element(alike, {}, &Lane::waiting);
    if (lane == alike.end() || failed_on_.contains(task)) return;
    if (lane->waiting >= policy.most(task)) return;
    const Token token = next_token();
    queue(task, token, worker, lane->last);
    effects.emplace_back(StartAttempt{task, token, worker, lane->last});
    lane->last = token;
    ++lane->waiting;
  }
}

/// A task started past `head`. It counts if its worker could have held the head.
void Scheduler::count_backfill(TaskNumber head, const WorkerBooks& books) {
  if ((hold_ && hold_->task == head) || !books.total.covers(resources(head))) return;
  if (++entry(head).passed >= options_.backfill_limit) hold_worker_for(head);
}

/// Holds the worker that has the fewest attempts to wait for.
void Scheduler::hold_worker_for(TaskNumber task) {
  if (hold_ && hold_->task == task) return;
  auto best = workers_.end();
  for (auto at = workers_.begin(); at != workers_.end(); ++at) {
    if (at->second.closed || !at->second.total.covers(resources(task))) continue;
    if (best == workers_.end() || at->second.running < best->second.running) best = at;
  }
  hold_ = {.task = task, .worker = best->first, .spare = best->second.total};
  BERTH_ASSERT(hold_->spare.subtract(resources(task)).has_value());
  for (auto& [_, attempt] : attempts_) attempt.backfills = false;
}

/// Everything that fits an idle stealer has just been started, so only tasks that are about to be
/// ready are worth waiting for.
void Scheduler::close_idle_stealers() {
  for (auto& [worker, books] : workers_) {
    if (books.kind == Kind::primary || books.closed || books.running > 0) continue;
    const bool wanted = starting() && std::ranges::any_of(classes_, [&](const ResourceClass& of) {
                          return of.pending > 0 && books.total.covers(of.resources);
                        });
    if (!wanted) close(worker);
  }
}

void Scheduler::after_event(std::vector<Effect>& effects) {
  if (starting() && !recovering_) assign(effects);
  close_idle_stealers();
#ifdef BERTH_CHECKED
  if (issued_ % (1 + static_cast<std::int64_t>(tasks_.size()) / 256) == 0) check();
#endif
}

std::vector<Requirements> Scheduler::needs(std::size_t most) const {
  std::vector<Requirements> needs;
  if (!starting()) return needs;
  auto room = options_.parallel > 0 ? options_.parallel - static_cast<std::int64_t>(running())
                                    : static_cast<std::int64_t>(tasks_.size());
  for (const auto& [_, number] : heads_) {
    if (room <= 0 || needs.size() == most) break;
    const ResourceClass& of = class_of({number});
    const auto width = std::min(room, static_cast<std::int64_t>(of.ready.size()));
    needs.push_back({of.resources, width});
    room -= width;
  }
  return needs;
}

std::vector<TaskNumber> Scheduler::wanting(std::size_t most) const {
  std::vector<TaskNumber> tasks;
  const std::size_t count = needs(most).size();
  for (auto at = heads_.begin(); tasks.size() < count; ++at) tasks.push_back({at->second});
  return tasks;
}

}  // namespace berth::schedule
