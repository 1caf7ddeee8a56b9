#include "berth/schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "berth/schedule/schedule_testing.h"

namespace berth::schedule {
namespace {

using testing::cpu;
using ::testing::ElementsAre;
using testing::House;
using ::testing::IsEmpty;
using testing::tasks_of;
using To = TaskSettled::To;

TEST(Scheduler, StartsInOrderWhatFits) {
  House house(tasks_of(3), {.epoch = 7});
  house.join(1, cpu(2000));
  const auto starts = house.take<StartAttempt>();
  ASSERT_EQ(starts.size(), 2U);
  EXPECT_EQ(starts[0].task.value, 1);
  EXPECT_EQ(starts[0].token.value, (7LL << 32) + 1);
  EXPECT_EQ(starts[1].token.value, (7LL << 32) + 2);
  ASSERT_EQ(house.scheduler.needs().size(), 1U);
  EXPECT_EQ(house.scheduler.needs()[0].width, 1);
}

TEST(Scheduler, GreaterPriorityGoesFirst) {
  auto tasks = tasks_of(3);
  tasks[2].priority = 5;
  House house(tasks);
  house.join(1, cpu(1000));
  EXPECT_THAT(house.started(), ElementsAre(3));
}

TEST(Scheduler, ParallelBoundsWhatRunsAndWhatIsNeeded) {
  auto tasks = tasks_of(10);
  for (int i = 5; i < 10; ++i) tasks[static_cast<std::size_t>(i)].resources = cpu(500);
  House house(tasks, {.parallel = 7});
  const auto needs = house.scheduler.needs();
  ASSERT_EQ(needs.size(), 2U);
  EXPECT_EQ(needs[0].min, cpu(1000));
  EXPECT_EQ(needs[0].width, 5);
  EXPECT_EQ(needs[1].width, 2);
  house.join(1, cpu(8000));
  EXPECT_EQ(house.started().size(), 7U);
  EXPECT_THAT(house.scheduler.needs(), IsEmpty());
}

TEST(Scheduler, NeedsAreOneForEachShapeInTheOrderOfTheQueue) {
  auto tasks = tasks_of(6);
  tasks[1].resources = tasks[4].resources = cpu(1000, 1);
  tasks[5].resources = cpu(64000);
  tasks[5].priority = 1;
  House house(tasks);
  house.join(1, cpu(1000));
  EXPECT_THAT(house.started(), ElementsAre(1));
  const auto needs = house.scheduler.needs();
  ASSERT_EQ(needs.size(), 3U);
  EXPECT_EQ(needs[0].min, cpu(64000));
  EXPECT_EQ(needs[1].min, cpu(1000, 1));
  EXPECT_EQ(needs[1].width, 2);
  EXPECT_EQ(needs[2].min, cpu(1000));
  EXPECT_EQ(needs[2].width, 2);
  EXPECT_EQ(house.scheduler.needs(1).size(), 1U);
}

TEST(Scheduler, RetriesWithGrowingPausesThenFails) {
  House house(tasks_of(1, 1000, 2));
  house.join(1, cpu(1000));
  Duration last{};
  for (int attempt = 1; attempt <= 3; ++attempt) {
    const auto start = house.take<StartAttempt>().at(0);
    house.end(start.token, Verdict::failed);
    const auto settled = house.take<TaskSettled>().at(0);
    if (attempt == 3) {
      EXPECT_EQ(settled.to, To::failed);
      EXPECT_TRUE(house.scheduler.over());
      return;
    }
    EXPECT_EQ(settled.to, To::again);
    EXPECT_GE(settled.retry_in * 4, last);  // doubled, give or take the jitter
    last = settled.retry_in;
    EXPECT_EQ(house.scheduler.next_tick(), house.now + settled.retry_in);
    house.now += settled.retry_in - Duration(1);
    house.tick();
    EXPECT_THAT(house.effects, IsEmpty());
    house.now += Duration(1);
    house.tick();
  }
}

TEST(Scheduler, PausesDoubleAndAreJittered) {
  House house(tasks_of(2, 1000, 3));
  house.join(1, cpu(2000));
  std::vector<TaskSettled> last;
  for (int attempt = 1; attempt <= 3; ++attempt) {
    for (const auto& start : house.take<StartAttempt>()) {
      house.scheduler.ended(start.token, Verdict::failed, house.now, house.effects);
    }
    last = house.take<TaskSettled>();
    house.now += std::chrono::seconds(9);
    house.tick();
  }
  ASSERT_EQ(last.size(), 2U);
  EXPECT_NE(last[0].retry_in, last[1].retry_in);
  for (const auto& settled : last) {
    EXPECT_GE(settled.retry_in, std::chrono::seconds(1));  // 2 s, ±50 %
    EXPECT_LE(settled.retry_in, std::chrono::seconds(3));
  }
}

TEST(Scheduler, APermanentFailureIsNotRetried) {
  House house(tasks_of(1, 1000, 5));
  house.join(1, cpu(1000));
  house.end(house.take<StartAttempt>().at(0).token, Verdict::permanent);
  EXPECT_EQ(house.take<TaskSettled>().at(0).to, To::failed);
}

TEST(Scheduler, StaleTokenChangesNothingAndIsCounted) {
  House house(tasks_of(2));
  house.join(1, cpu(1000));
  const auto token = house.take<StartAttempt>().at(0).token;
  house.end(token);
  house.effects.clear();
  house.end(token);
  house.end({12345}, Verdict::failed);
  EXPECT_THAT(house.effects, IsEmpty());
  EXPECT_EQ(house.scheduler.stale(), 2);
}

TEST(Scheduler, StopCancelsOnceAndStartsNothing) {
  House house(tasks_of(5, 1000, 3));
  house.join(1, cpu(2000));
  const auto starts = house.take<StartAttempt>();
  house.scheduler.stop(house.effects);
  house.scheduler.stop(house.effects);
  EXPECT_EQ(house.take<CancelAttempt>().size(), 2U);
  EXPECT_THAT(house.scheduler.needs(), IsEmpty());
  for (const auto& start : starts) house.end(start.token, Verdict::stopped);
  EXPECT_TRUE(house.scheduler.over());
  EXPECT_THAT(house.started(), IsEmpty());
}

TEST(Scheduler, FirstFailureHaltsWhenAsked) {
  House house(tasks_of(5), {.stop_on_failure = true});
  house.join(1, cpu(1000));
  house.end(house.take<StartAttempt>().at(0).token, Verdict::failed);
  EXPECT_THAT(house.started(), IsEmpty());
  EXPECT_TRUE(house.scheduler.over());
}

TEST(Scheduler, ClosedWorkerFinishesAndGetsNothingMore) {
  House house(tasks_of(3));
  house.join(1, cpu(1000));
  house.scheduler.close({1});
  house.end(house.take<StartAttempt>().at(0).token);
  EXPECT_THAT(house.started(), IsEmpty());
  EXPECT_TRUE(house.scheduler.idle({1}));
  house.scheduler.left({1});
  EXPECT_EQ(house.scheduler.needs().size(), 1U);
  house.join(2, cpu(1000));
  EXPECT_THAT(house.started(), ElementsAre(2));
}

// Dependencies.

TEST(SchedulerAfter, WaitsForAllOfThem) {
  auto tasks = tasks_of(3);
  tasks[2].after = {{1}, {2}};
  House house(tasks);
  house.join(1, cpu(8000));
  const auto starts = house.take<StartAttempt>();
  ASSERT_EQ(starts.size(), 2U);
  house.end(starts[1].token);
  EXPECT_THAT(house.started(), IsEmpty());
  house.end(starts[0].token);
  EXPECT_THAT(house.started(), ElementsAre(3));
}

TEST(SchedulerAfter, WhatFollowsAFailureIsSkippedAndNamesIt) {
  auto tasks = tasks_of(4, 1000, 1);
  tasks[1].after = {{1}};
  tasks[2].after = {{2}};
  House house(tasks);
  house.join(1, cpu(1000));
  house.end(house.take<StartAttempt>().at(0).token, Verdict::failed);
  EXPECT_EQ(house.take<TaskSettled>().size(), 1U);  // it has a retry: nothing is skipped
  house.end({(1LL << 32) + 2});                     // 4
  house.now += std::chrono::seconds(1);
  house.tick();
  house.end(house.take<StartAttempt>().at(0).token, Verdict::failed);
  const auto settled = house.take<TaskSettled>();
  ASSERT_EQ(settled.size(), 3U);
  EXPECT_EQ(settled[0].to, To::failed);
  EXPECT_EQ(settled[1].task.value, 2);
  EXPECT_EQ(settled[2].task.value, 3);
  for (int i = 1; i <= 2; ++i) {
    EXPECT_EQ(settled[static_cast<std::size_t>(i)].to, To::skipped);
    EXPECT_EQ(settled[static_cast<std::size_t>(i)].because.value, 1);
  }
  EXPECT_TRUE(house.scheduler.over());
}

TEST(SchedulerAfter, OfWhatFailedBeforeIsSkippedAtOnceAndOfWhatIsDoneIsReady) {
  auto tasks = tasks_of(5);
  tasks[0].state = State::failed;
  tasks[1].state = State::done;
  tasks[2].after = {{1}, {2}};
  tasks[3].after = {{3}};
  tasks[4].after = {{2}};
  House house(tasks);
  const auto skipped = house.take<TaskSettled>();
  ASSERT_EQ(skipped.size(), 2U);
  for (const auto& settled : skipped) {
    EXPECT_EQ(settled.to, To::skipped);
    EXPECT_EQ(settled.because.value, 1);
  }
  house.join(1, cpu(8000));
  EXPECT_THAT(house.started(), ElementsAre(5));
}

TEST(SchedulerAfter, AStopLeavesWhatFollowsOpen) {
  auto tasks = tasks_of(2);
  tasks[1].after = {{1}};
  House house(tasks);
  house.join(1, cpu(1000));
  const auto token = house.take<StartAttempt>().at(0).token;
  house.scheduler.stop(house.effects);
  house.end(token, Verdict::stopped);
  const auto settled = house.take<TaskSettled>();
  ASSERT_EQ(settled.size(), 1U);
  EXPECT_EQ(settled[0].to, To::stopped);
}

TEST(SchedulerAfter, CachedTasksAreSettledWithoutAnAttempt) {
  auto tasks = tasks_of(3);
  tasks[1].after = {{1}};
  tasks[2].after = {{2}};
  for (auto& task : tasks) task.asks = true;
  House house(tasks);
  house.join(1, cpu(8000));
  const auto first = house.take<Unblocked>();
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].task.value, 1);
  house.scheduler.settle({1}, State::done, house.effects);
  EXPECT_EQ(house.take<Unblocked>().at(0).task.value, 2);
  house.scheduler.proceed({2}, house.effects);
  const auto start = house.take<StartAttempt>().at(0);
  EXPECT_EQ(start.task.value, 2);
  house.scheduler.settle({2}, State::done, house.effects);  // it runs: changes nothing
  EXPECT_THAT(house.effects, IsEmpty());
  house.end(start.token, Verdict::failed);
  EXPECT_EQ(house.take<TaskSettled>().at(1).because.value, 2);
  EXPECT_TRUE(house.scheduler.over());
  house.scheduler.check();
}

TEST(SchedulerAfter, SettledFromOutsideInEveryQueue) {
  auto tasks = tasks_of(4, 1000, 1);
  tasks[3].after = {{1}, {2}, {3}};
  House house(tasks);
  house.scheduler.settle({1}, State::done, house.effects);  // ready
  house.join(1, cpu(1000));
  house.end(house.take<StartAttempt>().at(0).token, Verdict::failed);
  house.scheduler.settle({2}, State::done, house.effects);  // delayed
  house.scheduler.check();
  EXPECT_FALSE(house.scheduler.next_tick());
  house.scheduler.settle({4}, State::failed, house.effects);  // waiting
  house.scheduler.check();
  house.end(house.take<StartAttempt>().at(0).token);
  EXPECT_TRUE(house.scheduler.over());
}

/// A step `count` (2) after `split` (1), unfolded into two once that is done; `sum` (3) after it.
TEST(SchedulerAfter, AStepUnfoldsLate) {
  auto tasks = tasks_of(3);
  tasks[1].after = {{1}};
  tasks[1].asks = true;
  tasks[2].after = {{2}};
  House house(tasks);
  house.join(1, cpu(8000));
  house.end(house.take<StartAttempt>().at(0).token);
  EXPECT_EQ(house.take<Unblocked>().at(0).task.value, 2);
  for (int i = 4; i <= 5; ++i) house.add({.number = {i}, .resources = cpu(1000), .after = {{1}}});
  house.scheduler.wait_for({2}, std::vector<TaskNumber>{{4}, {5}}, house.effects);
  EXPECT_FALSE(house.scheduler.over());
  const auto instances = house.take<StartAttempt>();
  ASSERT_EQ(instances.size(), 2U);
  for (const auto& instance : instances) house.end(instance.token);
  EXPECT_EQ(house.take<Unblocked>().at(0).task.value, 2);
  house.scheduler.settle({2}, State::done, house.effects);
  EXPECT_THAT(house.started(), ElementsAre(3));
}

// Workers.

TEST(SchedulerWorkers, AnIdleStealerIsFreedOnceThereIsNothingToTake) {
  House house(tasks_of(3, 1000, 1));
  house.join(1, cpu(1000));
  house.join(2, cpu(1000), Kind::stealer);
  const auto starts = house.take<StartAttempt>();
  ASSERT_EQ(starts.size(), 2U);
  EXPECT_EQ(starts[1].worker.value, 2);
  house.end(starts[1].token);
  const auto third = house.take<StartAttempt>().at(0);
  EXPECT_EQ(third.worker.value, 2);
  house.end(third.token, Verdict::failed);
  EXPECT_THAT(house.take<FreeWorker>(), IsEmpty());  // a retry is due soon
  house.end(starts[0].token);
  house.now += std::chrono::seconds(1);
  house.tick();
  const auto retry = house.take<StartAttempt>().at(0);
  EXPECT_EQ(retry.worker.value, 1);  // the primary first
  house.tick();
  EXPECT_TRUE(house.scheduler.closed({2}));
  house.scheduler.left({2});
  house.end(retry.token);
  EXPECT_THAT(house.take<FreeWorker>(), IsEmpty());  // the primary stays
}

TEST(SchedulerWorkers, AStealerThatComesTooLateIsFreedAtOnce) {
  House house(tasks_of(1));
  house.join(1, cpu(1000));
  house.join(2, cpu(1000), Kind::stealer);
  EXPECT_EQ(house.take<FreeWorker>().at(0).worker.value, 2);
}

TEST(SchedulerWorkers, TasksOfALostWorkerAreReadyAtOnceAndKeepTheirBudget) {
  House house(tasks_of(2, 1000, 0));
  house.join(1, cpu(2000));
  const auto old = house.take<StartAttempt>();
  house.lose(1);
  for (const auto& settled : house.take<TaskSettled>()) {
    EXPECT_EQ(settled.to, To::again);
    EXPECT_EQ(settled.retry_in, Duration{});
  }
  house.lose(1);
  house.join(2, cpu(2000));
  EXPECT_EQ(house.take<StartAttempt>().size(), 2U);
  for (const auto& start : old) house.end(start.token);
  EXPECT_THAT(house.effects, IsEmpty());
  EXPECT_EQ(house.scheduler.stale(), 2);
  EXPECT_EQ(house.scheduler.running(), 2U);
}

TEST(SchedulerWorkers, ALossDoesNotLengthenLaterPauses) {
  House house(tasks_of(1, 1000, 1));
  for (int id = 1; id <= 10; ++id) {
    house.join(id, cpu(1000));
    if (id < 10) house.lose(id);
  }
  house.end(house.take<StartAttempt>().back().token, Verdict::failed);
  EXPECT_LE(house.take<TaskSettled>().at(0).retry_in, std::chrono::milliseconds(750));
}

TEST(SchedulerWorkers, AnEarlierRunnersAttemptsGoOn) {
  auto tasks = tasks_of(6);
  for (int i = 0; i < 3; ++i) tasks[static_cast<std::size_t>(i)].asks = true;  // ran before
  tasks[4].after = {{2}};
  House house(tasks, {.epoch = 2});
  house.scheduler.proceed({3}, house.effects);  // was waited for long enough
  house.join(1, cpu(1000));
  EXPECT_THAT(house.started(), ElementsAre(3));
  const auto before = [](std::int64_t number) { return Token{(1LL << 32) + number}; };
  house.scheduler.joined({.id = {2},
                          .resources = cpu(3000),
                          .earlier = {{{1}, before(1)},
                                      {{2}, before(2), Verdict::done},
                                      {{3}, before(3)},
                                      {{3}, before(4), Verdict::done},
                                      {{5}, before(5)}}},  // started before 2 was recorded
                         house.now, house.effects);
  house.scheduler.check();
  const auto effects = std::exchange(house.effects, {});
  ASSERT_EQ(effects.size(), 3U);
  EXPECT_EQ(std::get<TaskSettled>(effects[0]).token, before(2));
  EXPECT_EQ(std::get<CancelAttempt>(effects[1]).token, before(3));
  EXPECT_EQ(std::get<StartAttempt>(effects[2]).task.value, 4);
  house.end(before(1));
  house.end(before(5));
  const auto settled = house.take<TaskSettled>();
  ASSERT_EQ(settled.size(), 2U);
  EXPECT_EQ(settled[0].to, To::done);
  EXPECT_EQ(settled[1].task.value, 5);
  EXPECT_EQ(house.scheduler.stale(), 1);  // of 3, which runs anew
}

TEST(SchedulerWorkers, AnEarlierEndIsHeardWhileTheTaskBacksOff) {
  House house(tasks_of(1), {.epoch = 2});
  house.scheduler.joined({.id = {1},
                          .resources = cpu(1000),
                          .earlier = {{{1}, {7}, Verdict::infrastructure_failure},
                                      {{1}, {8}, Verdict::infrastructure_failure}}},
                         house.now, house.effects);
  house.scheduler.check();
  EXPECT_EQ(house.take<TaskSettled>().size(), 2U);
  house.now += std::chrono::seconds(3);
  house.tick();
  EXPECT_THAT(house.started(), ElementsAre(1));
}

TEST(SchedulerWorkers, WhatAnEarlierRunnerStoppedGoesOn) {
  auto tasks = tasks_of(2);
  tasks[0].asks = true;
  tasks[1].after = {{1}};
  House house(tasks, {.epoch = 2});
  house.scheduler.joined(
      {.id = {1}, .resources = cpu(1000), .earlier = {{{1}, {7}, Verdict::stopped}}}, house.now,
      house.effects);
  const auto settled = house.take<TaskSettled>();
  ASSERT_EQ(settled.size(), 1U);
  EXPECT_EQ(settled[0].to, To::again);
}

TEST(SchedulerWorkers, WhatComesBackBeyondItsRoomTakesThatOfOneWhoseEndIsStillToBeHeard) {
  auto tasks = tasks_of(4, 2000);
  tasks[2].resources = cpu(2500);
  House house(tasks, {.epoch = 2});
  house.scheduler.joined(
      {.id = {1}, .resources = cpu(3000), .earlier = {{{1}, {7}}, {{2}, {8}}, {{3}, {9}}}},
      house.now, house.effects);
  house.scheduler.check();
  EXPECT_EQ(house.scheduler.running(), 1U);
  const auto cancelled = house.take<CancelAttempt>();
  ASSERT_EQ(cancelled.size(), 1U) << "but nothing else holds what this one takes";
  EXPECT_EQ(cancelled[0].token.value, 9);
  house.end({7});
  EXPECT_EQ(house.scheduler.running(), 1U);
  EXPECT_TRUE(house.take<StartAttempt>().empty());
  house.end({8});
  EXPECT_THAT(house.started(), ElementsAre(3));
}

TEST(SchedulerWorkers, WhatIsBehindTheFenceDoesNotComeBack) {
  auto tasks = tasks_of(1);
  tasks[0].fence = {6};
  tasks[0].asks = true;
  House house(tasks, {.epoch = 2});
  const auto come_back = [&](std::int64_t worker, std::int64_t token) {
    house.scheduler.joined({.id = {worker}, .resources = cpu(1000), .earlier = {{{1}, {token}}}},
                           house.now, house.effects);
    return house.take<CancelAttempt>().empty();
  };
  EXPECT_FALSE(come_back(1, 5));
  EXPECT_TRUE(come_back(2, 7));
  house.scheduler.close({1});
  house.lose(2);
  EXPECT_FALSE(come_back(3, 6));
  EXPECT_EQ(house.scheduler.running(), 1U);  // a new attempt
}

TEST(SchedulerWorkers, AnAttemptDoesNotComeBackOnceLost) {
  House house(tasks_of(1));
  house.join(1, cpu(1000));
  const auto old = house.take<StartAttempt>().at(0).token;
  house.lose(1);
  house.effects.clear();
  house.scheduler.joined({.id = {2}, .resources = cpu(1000), .earlier = {{{1}, old}}}, house.now,
                         house.effects);
  EXPECT_EQ(std::get<CancelAttempt>(house.effects.at(0)).token, old);
  EXPECT_EQ(std::get<StartAttempt>(house.effects.at(1)).task.value, 1);
}

}  // namespace
}  // namespace berth::schedule
