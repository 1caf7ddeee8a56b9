// Who gets what: the queue, the workers, and the one that is kept for a task too large to fit now.
#include <algorithm>
#include <tuple>

#include "berth/schedule/schedule.h"

namespace berth::schedule {

bool Scheduler::room() const {
  return options_.parallel <= 0 || static_cast<std::int64_t>(running()) < options_.parallel;
}

/// Down the queue, shape by shape: what fits starts. A start takes and never gives, so a shape that
/// was passed over stays passed over.
void Scheduler::assign(std::vector<Effect>& effects) {
  std::optional<TaskNumber> head;  // the first that fits nowhere now but could
  for (auto at = heads_.begin(); at != heads_.end() && room();) {
    const ReadyKey first = *at;
    const auto [task, worker] =
        choose_of(shapes_[static_cast<std::size_t>(entry({first.second}).shape)]);
    if (worker == workers_.end()) {
      if (!head && avoided(task) == 0 && held_by_some(task)) {
        head = task;
        if (entry(task).overtaken >= options_.overtakings) keep(task);
      }
      ++at;
      continue;
    }
    const Token token = next_token();
    occupy(task, token, worker->first);
    effects.emplace_back(StartAttempt{task, token, worker->first});
    if (head) overtake(*head, worker->second);
    at = heads_.lower_bound(first);  // itself, where one behind it started
  }
}

/// The first of a shape that can start, and where; else the first that waits for room alone, or
/// for another machine. Behind those for which one is sought only what may be started anywhere.
std::pair<TaskNumber, Scheduler::Workers::iterator> Scheduler::choose_of(const Shape& shape) {
  for (const auto& [_, number] : shape.ready) {
    const auto worker = choose({number});
    if (worker != workers_.end() || avoided({number}) == 0) return {{number}, worker};
  }
  return {{shape.ready.begin()->second}, workers_.end()};
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

/// Where the task fits: on another machine than the one on which it failed last, if there is a
/// choice; a primary worker before a stealer, which is to become idle; then the one with the fewest
/// cards free, so that what needs no card leaves them to what does.
Scheduler::Workers::iterator Scheduler::choose(TaskNumber task) {
  const Resources& wanted = resources(task);
  const bool behind = kept_ && key(task) > key(kept_->task);
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
    if (behind && at->first == kept_->worker && !kept_->spare.covers(wanted)) continue;
    if (best == workers_.end() || rank(*at) < rank(*best)) best = at;
  }
  return best;
}

/// Whether a worker that we have could hold the task once it is empty.
bool Scheduler::held_by_some(TaskNumber task) const {
  return std::ranges::any_of(workers_, [&](const auto& worker) {
    return !worker.second.closed && worker.second.total.covers(resources(task));
  });
}

void Scheduler::occupy(TaskNumber task, Token token, WorkerId worker) {
  const Resources& taken = resources(task);
  const bool beside = kept_ && kept_->worker == worker && key(task) > key(kept_->task) &&
                      kept_->spare.covers(taken);
  if (beside) BERTH_ASSERT(kept_->spare.subtract(taken).has_value());
  WorkerBooks& books = workers_.at(worker);
  BERTH_ASSERT(books.free.subtract(taken).has_value());
  ++books.running;
  move(task, Place::running);
  attempts_.emplace(token,
                    Attempt{.task = task, .worker = worker, .began = now_, .beside = beside});
}

void Scheduler::queue(TaskNumber task, Token token, WorkerId worker, Token behind) {
  move(task, Place::running);
  ++workers_.at(worker).running;
  ++ahead_;
  attempts_.emplace(token,
                    Attempt{.task = task, .worker = worker, .began = now_, .behind = behind});
}

/// The first attempt there with the resources of the task that nobody stands behind; 0: none.
Token Scheduler::last_in_line(TaskNumber task, WorkerId worker) const {
  std::set<Token> followed;
  for (const auto& [_, attempt] : attempts_) followed.insert(attempt.behind);
  for (const auto& [token, attempt] : attempts_)
    if (attempt.worker == worker && entry(attempt.task).shape == entry(task).shape &&
        !followed.contains(token))
      return token;
  return {};
}

void Scheduler::send_ahead(WorkerId worker, const AheadPolicy& policy,
                           std::vector<Effect>& effects) {
  const bool closed = workers_.at(worker).closed;
  if (!starting() || options_.stop_on_failure || kept_ || closed || heads_.empty()) return;
  struct Lane {  // of one that runs and those behind it
    Token last;
    bool ends_soon = false;
    std::size_t waiting = 0;
  };
  std::map<std::int32_t, std::vector<Lane>> lanes;  // by shape
  for (const auto& [token, attempt] : attempts_) {
    if (attempt.worker != worker) continue;
    auto& alike = lanes[entry(attempt.task).shape];
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
    auto& alike = lanes[entry(task).shape];
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

/// Something started past `head`: it counts where it took from what could have held the head.
void Scheduler::overtake(TaskNumber head, const WorkerBooks& books) {
  if ((kept_ && kept_->task == head) || !books.total.covers(resources(head))) return;
  if (++entry(head).overtaken >= options_.overtakings) keep(head);
}

/// Keeps the worker that has the fewest attempts to wait for.
void Scheduler::keep(TaskNumber task) {
  if (kept_ && kept_->task == task) return;
  auto best = workers_.end();
  for (auto at = workers_.begin(); at != workers_.end(); ++at) {
    if (at->second.closed || !at->second.total.covers(resources(task))) continue;
    if (best == workers_.end() || at->second.running < best->second.running) best = at;
  }
  kept_ = {.task = task, .worker = best->first, .spare = best->second.total};
  BERTH_ASSERT(kept_->spare.subtract(resources(task)).has_value());
  for (auto& [_, attempt] : attempts_) attempt.beside = false;
}

/// Frees idle stealers: all that fits them has just been started, so only what is about to be ready
/// is worth waiting for.
void Scheduler::dismiss(std::vector<Effect>& effects) {
  for (auto& [worker, books] : workers_) {
    if (books.kind == Kind::primary || books.closed || books.running > 0) continue;
    const bool wanted = starting() && std::ranges::any_of(shapes_, [&](const Shape& shape) {
                          return shape.pending > 0 && books.total.covers(shape.resources);
                        });
    if (wanted) continue;
    close(worker);
    effects.emplace_back(FreeWorker{worker});
  }
}

void Scheduler::after_event(std::vector<Effect>& effects) {
  if (starting()) assign(effects);
  dismiss(effects);
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
    const Shape& shape = shapes_[static_cast<std::size_t>(entry({number}).shape)];
    const auto width = std::min(room, static_cast<std::int64_t>(shape.ready.size()));
    needs.push_back({shape.resources, width});
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
