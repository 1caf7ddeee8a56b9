#include "berth/schedule/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "berth/base/rng.h"

namespace berth::schedule {
namespace {

Resources cpu(std::int64_t milli) {
  Resources resources;
  resources.set(Known::cpu, milli);
  return resources;
}

std::vector<Task> tasks_of(int count, std::int64_t milli = 1000, int retries = 0) {
  std::vector<Task> tasks;
  for (int i = 1; i <= count; ++i)
    tasks.push_back({.number = {i}, .resources = cpu(milli), .retries = retries});
  return tasks;
}

template <class E>
std::vector<E> all(const std::vector<Effect>& effects) {
  std::vector<E> found;
  for (const auto& effect : effects)
    if (const auto* one = std::get_if<E>(&effect)) found.push_back(*one);
  return found;
}

constexpr Mono kStart{};

TEST(Scheduler, StartsInOrderWhatFits) {
  Scheduler scheduler(tasks_of(3), {.epoch = 7});
  std::vector<Effect> effects;
  scheduler.joined({1}, cpu(2000), kStart, effects);
  const auto starts = all<StartAttempt>(effects);
  ASSERT_EQ(starts.size(), 2U);
  EXPECT_EQ(starts[0].task.value, 1);
  EXPECT_EQ(starts[0].token.value, (7LL << 32) + 1);
  EXPECT_EQ(starts[1].token.value, (7LL << 32) + 2);
  ASSERT_TRUE(scheduler.need());
  EXPECT_EQ(scheduler.need()->width, 1);
  scheduler.check();
}

TEST(Scheduler, GreaterPriorityGoesFirst) {
  auto tasks = tasks_of(3);
  tasks[2].priority = 5;
  Scheduler scheduler(std::move(tasks), {});
  std::vector<Effect> effects;
  scheduler.joined({1}, cpu(1000), kStart, effects);
  EXPECT_EQ(all<StartAttempt>(effects).at(0).task.value, 3);
}

TEST(Scheduler, ParallelBoundsWhatRunsAndWhatIsNeeded) {
  Scheduler scheduler(tasks_of(10), {.parallel = 3});
  ASSERT_TRUE(scheduler.need());
  EXPECT_EQ(scheduler.need()->width, 3);
  std::vector<Effect> effects;
  scheduler.joined({1}, cpu(8000), kStart, effects);
  EXPECT_EQ(all<StartAttempt>(effects).size(), 3U);
  EXPECT_FALSE(scheduler.need());
}

TEST(Scheduler, RetriesWithGrowingPausesThenFails) {
  Scheduler scheduler(tasks_of(1, 1000, 2), {});
  std::vector<Effect> effects;
  scheduler.joined({1}, cpu(1000), kStart, effects);
  Mono now = kStart;
  Duration last{};
  for (int attempt = 1; attempt <= 3; ++attempt) {
    const auto start = all<StartAttempt>(effects).at(0);
    effects.clear();
    scheduler.ended(start.token, Verdict::failed, now, effects);
    const auto settled = all<TaskSettled>(effects).at(0);
    if (attempt == 3) {
      EXPECT_EQ(settled.to, TaskSettled::To::failed);
      EXPECT_TRUE(scheduler.over());
      return;
    }
    EXPECT_EQ(settled.to, TaskSettled::To::again);
    EXPECT_GE(settled.retry_in * 4, last);  // doubled, give or take the jitter
    last = settled.retry_in;
    EXPECT_EQ(scheduler.next_tick(), now + settled.retry_in);
    effects.clear();
    scheduler.tick(now + settled.retry_in - Duration(1), effects);
    EXPECT_TRUE(effects.empty());
    now += settled.retry_in;
    scheduler.tick(now, effects);
  }
}

TEST(Scheduler, HopelessIsNotRetried) {
  Scheduler scheduler(tasks_of(1, 1000, 5), {});
  std::vector<Effect> effects;
  scheduler.joined({1}, cpu(1000), kStart, effects);
  const auto token = all<StartAttempt>(effects).at(0).token;
  effects.clear();
  scheduler.ended(token, Verdict::hopeless, kStart, effects);
  EXPECT_EQ(all<TaskSettled>(effects).at(0).to, TaskSettled::To::failed);
}

TEST(Scheduler, ShortageTakesNoRetry) {
  Scheduler scheduler(tasks_of(1, 1000, 0), {});
  std::vector<Effect> effects;
  scheduler.joined({1}, cpu(1000), kStart, effects);
  Mono now = kStart;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const auto token = all<StartAttempt>(effects).at(0).token;
    effects.clear();
    scheduler.ended(token, Verdict::not_its_fault, now, effects);
    const auto settled = all<TaskSettled>(effects).at(0);
    EXPECT_EQ(settled.to, TaskSettled::To::again);
    EXPECT_LE(settled.retry_in, std::chrono::seconds(90));
    effects.clear();
    now += settled.retry_in;
    scheduler.tick(now, effects);
  }
}

TEST(Scheduler, StaleTokenChangesNothing) {
  Scheduler scheduler(tasks_of(2), {});
  std::vector<Effect> effects;
  scheduler.joined({1}, cpu(1000), kStart, effects);
  const auto token = all<StartAttempt>(effects).at(0).token;
  scheduler.ended(token, Verdict::done, kStart, effects);
  effects.clear();
  scheduler.ended(token, Verdict::done, kStart, effects);
  scheduler.ended({12345}, Verdict::failed, kStart, effects);
  EXPECT_TRUE(effects.empty());
  scheduler.check();
}

TEST(Scheduler, StopCancelsOnceAndStartsNothing) {
  Scheduler scheduler(tasks_of(5, 1000, 3), {});
  std::vector<Effect> effects;
  scheduler.joined({1}, cpu(2000), kStart, effects);
  const auto starts = all<StartAttempt>(effects);
  effects.clear();
  scheduler.stop(effects);
  scheduler.stop(effects);
  EXPECT_EQ(all<CancelAttempt>(effects).size(), 2U);
  EXPECT_FALSE(scheduler.need());
  for (const auto& start : starts) scheduler.ended(start.token, Verdict::stopped, kStart, effects);
  EXPECT_TRUE(scheduler.over());
  EXPECT_TRUE(all<StartAttempt>(effects).empty());
}

TEST(Scheduler, FirstFailureHaltsWhenAsked) {
  Scheduler scheduler(tasks_of(5), {.stop_on_failure = true});
  std::vector<Effect> effects;
  scheduler.joined({1}, cpu(1000), kStart, effects);
  const auto token = all<StartAttempt>(effects).at(0).token;
  effects.clear();
  scheduler.ended(token, Verdict::failed, kStart, effects);
  EXPECT_TRUE(all<StartAttempt>(effects).empty());
  EXPECT_TRUE(scheduler.over());
}

TEST(Scheduler, ClosedWorkerFinishesAndGetsNothingMore) {
  Scheduler scheduler(tasks_of(3), {});
  std::vector<Effect> effects;
  scheduler.joined({1}, cpu(1000), kStart, effects);
  scheduler.close({1});
  const auto token = all<StartAttempt>(effects).at(0).token;
  effects.clear();
  scheduler.ended(token, Verdict::done, kStart, effects);
  EXPECT_TRUE(all<StartAttempt>(effects).empty());
  EXPECT_TRUE(scheduler.idle({1}));
  scheduler.left({1});
  EXPECT_TRUE(scheduler.need());
  scheduler.joined({2}, cpu(1000), kStart, effects);
  EXPECT_EQ(all<StartAttempt>(effects).size(), 1U);
}

/// A random life: workers come, close and leave, attempts end in every way, time passes; after
/// every event the books must agree, and in the end every task has been settled exactly once.
class Simulation {
 public:
  explicit Simulation(std::uint64_t seed)
      : rng_(seed),
        count_(static_cast<int>(1 + rng_.below(100))),
        parallel_(static_cast<std::int64_t>(rng_.below(4))),
        scheduler_(make_tasks(), {.epoch = 3, .seed = seed, .parallel = parallel_}) {}

  void run() {
    for (int event = 0; event < 500 && !scheduler_.over(); ++event) {
      step();
      absorb();
      scheduler_.check();
    }
    while (!scheduler_.over()) {  // then let it finish
      if (workers_.empty()) join();
      now_ += std::chrono::seconds(120);
      scheduler_.tick(now_, effects_);
      absorb();
      if (running_.empty())
        join();
      else
        end(Verdict::done);
      absorb();
      scheduler_.check();
    }
    EXPECT_EQ(static_cast<int>(settled_.size()), count_);
    EXPECT_TRUE(running_.empty());
  }

 private:
  std::vector<Task> make_tasks() {
    auto tasks = tasks_of(count_);
    for (auto& task : tasks) {
      task.resources = cpu(static_cast<std::int64_t>(1 + rng_.below(4)) * 500);
      task.priority = static_cast<std::int64_t>(rng_.below(3));
      task.retries = static_cast<int>(rng_.below(3));
    }
    return tasks;
  }

  void step() {
    switch (rng_.below(6)) {
      case 0: join(); break;
      case 1: leave(); break;
      case 2:
        now_ += from_ms(static_cast<std::int64_t>(rng_.below(4000)));
        scheduler_.tick(now_, effects_);
        break;
      case 3:
        scheduler_.ended({static_cast<std::int64_t>(rng_.below(99))}, Verdict::done, now_,
                         effects_);
        break;
      default: end(static_cast<Verdict>(rng_.below(5))); break;
    }
  }

  void join() {
    const WorkerId id{++made_};
    workers_.push_back(id);
    scheduler_.joined(id, cpu(static_cast<std::int64_t>(2 + rng_.below(6)) * 1000), now_, effects_);
  }

  void leave() {
    if (workers_.empty()) return;
    const auto worker = workers_[rng_.below(workers_.size())];
    scheduler_.close(worker);
    if (!scheduler_.idle(worker)) return;
    scheduler_.left(worker);
    std::erase(workers_, worker);
  }

  void end(Verdict verdict) {
    if (running_.empty()) return;
    const auto token =
        std::next(running_.begin(), static_cast<std::ptrdiff_t>(rng_.below(running_.size())));
    scheduler_.ended(token->first, verdict, now_, effects_);
  }

  void absorb() {
    for (const auto& effect : effects_) {
      if (const auto* start = std::get_if<StartAttempt>(&effect)) {
        EXPECT_TRUE(tokens_.insert(start->token.value).second);
        EXPECT_GT(start->token.value, last_token_);
        last_token_ = start->token.value;
        EXPECT_FALSE(settled_.contains(start->task.value)) << "started after it was settled";
        for (const auto& [token, task] : running_) EXPECT_NE(task, start->task.value);
        running_.emplace(start->token, start->task.value);
        if (parallel_ > 0) {
          EXPECT_LE(static_cast<std::int64_t>(running_.size()), parallel_);
        }
      } else if (const auto* settled = std::get_if<TaskSettled>(&effect)) {
        EXPECT_EQ(running_.erase(settled->token), 1U);
        if (settled->to != TaskSettled::To::again) {
          EXPECT_TRUE(settled_.insert(settled->task.value).second);
        }
      }
    }
    effects_.clear();
  }

  Rng rng_;
  int count_;
  std::int64_t parallel_;
  Scheduler scheduler_;
  Mono now_{};
  std::vector<Effect> effects_;
  std::vector<WorkerId> workers_;
  std::int64_t made_ = 0;
  std::map<Token, std::int64_t> running_;
  std::set<std::int64_t> tokens_, settled_;
  std::int64_t last_token_ = 0;
};

TEST(Scheduler, TenThousandRandomLives) {
  const char* one = std::getenv("BERTH_SEED");
  const std::uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 10) : 0;
  const std::uint64_t last = one != nullptr ? first + 1 : 10'000;
  for (std::uint64_t seed = first; seed < last; ++seed) {
    Simulation(seed).run();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "replay with BERTH_SEED=" << seed;
  }
}

}  // namespace
}  // namespace berth::schedule
