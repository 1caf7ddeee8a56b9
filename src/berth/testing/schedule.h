// What the tests of the scheduler share.
#pragma once

#include <ranges>
#include <utility>
#include <vector>

#include "berth/schedule/schedule.h"

namespace berth::schedule::testing {

inline Resources cpu(std::int64_t milli, std::int64_t gpu = 0) {
  Resources resources;
  resources.set(Known::cpu, milli);
  resources.set(Known::gpu, gpu);
  return resources;
}

inline std::vector<Task> tasks_of(int count, std::int64_t milli = 1000, int retries = 0) {
  std::vector<Task> tasks;
  for (int i = 1; i <= count; ++i)
    tasks.push_back({.number = {i}, .resources = cpu(milli), .retries = retries});
  return tasks;
}

/// A scheduler, its clock, and the effects that no test has taken yet. Each event is followed by a
/// check of the books.
struct TestScheduler {
  explicit TestScheduler(const std::vector<Task>& tasks, Options options = {})
      : scheduler(options) {
    scheduler.add(tasks, effects);
    scheduler.check();
  }
  void add(const Task& task) {
    scheduler.add(std::span(&task, 1), effects);
    scheduler.check();
  }
  void join(std::int64_t id, const Resources& resources, Kind kind = Kind::primary) {
    scheduler.joined({.id = {id}, .resources = resources, .kind = kind}, now, effects);
    scheduler.check();
  }
  void end(Token token, Verdict verdict = Verdict::done) {
    scheduler.ended(token, verdict, now, effects);
    scheduler.check();
  }
  /// Reports the loss of a worker with these attempts, the latest last, as the runner does.
  void lose(std::int64_t id, const std::vector<Token>& attempts) {
    scheduler.close({id});
    for (const auto token : std::views::reverse(attempts))
      end(token, scheduler.waits(token) ? Verdict::given_back : Verdict::infrastructure_failure);
    scheduler.left({id});
    scheduler.check();
  }
  void tick() {
    scheduler.tick(now, effects);
    scheduler.check();
  }
  /// The effects of type E; the others are dropped.
  template <class E>
  std::vector<E> take() {
    std::vector<E> found;
    for (const auto& effect : std::exchange(effects, {}))
      if (const auto* one = std::get_if<E>(&effect)) found.push_back(*one);
    return found;
  }
  /// The numbers of the tasks that started, in order.
  std::vector<std::int64_t> started() {
    std::vector<std::int64_t> numbers;
    for (const auto& start : take<StartAttempt>()) numbers.push_back(start.task.value);
    return numbers;
  }

  Scheduler scheduler;
  Mono now{};
  std::vector<Effect> effects;
};

}  // namespace berth::schedule::testing
