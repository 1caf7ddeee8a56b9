#include "berth/schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "berth/testing/schedule.h"

namespace berth::schedule {
namespace {

using testing::cpu;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::tasks_of;
using testing::TestScheduler;
using To = TaskSettled::To;

TEST(Scheduler, StartsInOrderWhatFits) {
  TestScheduler test(tasks_of(3), {.epoch = 7});
  test.join(1, cpu(2000));
  const auto starts = test.take<StartAttempt>();
  ASSERT_EQ(starts.size(), 2U);
  EXPECT_EQ(starts[0].task.value, 1);
  EXPECT_EQ(starts[0].token.value, (7LL << 32) + 1);
  EXPECT_EQ(starts[1].token.value, (7LL << 32) + 2);
  ASSERT_EQ(test.scheduler.needs().size(), 1U);
  EXPECT_EQ(test.scheduler.needs()[0].width, 1);
}

/// By a seed of ./dev simulate: the first worker had room, and was given what the second one ran.
TEST(Scheduler, NothingStartsUntilAllWorkersOfAnEarlierRunnerHaveJoined) {
  TestScheduler test(tasks_of(3), {.epoch = 2});
  const Token before{(1LL << 32) + 1};
  test.scheduler.begin_recovery();
  test.join(1, cpu(2000));
  test.scheduler.joined({.id = {2}, .resources = cpu(1000), .earlier = {{{1}, before}}}, test.now,
                        test.effects);
  EXPECT_TRUE(test.effects.empty());
  test.scheduler.end_recovery(test.now, test.effects);
  EXPECT_EQ(test.effects.size(), 2U) << "tasks 2 and 3 start, and nothing is cancelled";
  EXPECT_EQ(test.take<StartAttempt>().size(), 2U);
}

/// By a seed of ./dev simulate: the next attempt ran beside one that had been called lost and still
/// ended.
TEST(Scheduler, ATaskWaitsForTheEndOfAnAttemptThatCountsForNothing) {
  auto tasks = tasks_of(1);
  tasks[0].fence = {8};
  TestScheduler test(tasks, {.epoch = 2});
  const schedule::Earlier old{.task = {1}, .token = {7}, .ends = true};
  test.scheduler.joined({.id = {1}, .resources = cpu(2000), .earlier = {old}}, test.now,
                        test.effects);
  EXPECT_TRUE(test.effects.empty());
  test.end({7}, Verdict::given_back);
  EXPECT_EQ(test.take<StartAttempt>().size(), 1U);
}

TEST(Scheduler, GreaterPriorityGoesFirst) {
  auto tasks = tasks_of(3);
  tasks[2].priority = 5;
  TestScheduler test(tasks);
  test.join(1, cpu(1000));
  EXPECT_THAT(test.started(), ElementsAre(3));
}

TEST(Scheduler, ParallelBoundsWhatRunsAndWhatIsNeeded) {
  auto tasks = tasks_of(10);
  for (int i = 5; i < 10; ++i) tasks[static_cast<std::size_t>(i)].resources = cpu(500);
  TestScheduler test(tasks, {.parallel = 7});
  const auto needs = test.scheduler.needs();
  ASSERT_EQ(needs.size(), 2U);
  EXPECT_EQ(needs[0].min, cpu(1000));
  EXPECT_EQ(needs[0].width, 5);
  EXPECT_EQ(needs[1].width, 2);
  test.join(1, cpu(8000));
  EXPECT_EQ(test.started().size(), 7U);
  EXPECT_THAT(test.scheduler.needs(), IsEmpty());
}

TEST(Scheduler, NeedsAreOneForEachResourceClassInTheOrderOfTheQueue) {
  auto tasks = tasks_of(6);
  tasks[1].resources = tasks[4].resources = cpu(1000, 1);
  tasks[5].resources = cpu(64000);
  tasks[5].priority = 1;
  TestScheduler test(tasks);
  test.join(1, cpu(1000));
  EXPECT_THAT(test.started(), ElementsAre(1));
  const auto needs = test.scheduler.needs();
  ASSERT_EQ(needs.size(), 3U);
  EXPECT_EQ(needs[0].min, cpu(64000));
  EXPECT_EQ(needs[1].min, cpu(1000, 1));
  EXPECT_EQ(needs[1].width, 2);
  EXPECT_EQ(needs[2].min, cpu(1000));
  EXPECT_EQ(needs[2].width, 2);
  EXPECT_EQ(test.scheduler.needs(1).size(), 1U);
}

TEST(Scheduler, RetriesWithGrowingPausesThenFails) {
  TestScheduler test(tasks_of(1, 1000, 2));
  test.join(1, cpu(1000));
  Duration last{};
  for (int attempt = 1; attempt <= 3; ++attempt) {
    const auto start = test.take<StartAttempt>().at(0);
    test.end(start.token, Verdict::failed);
    const auto settled = test.take<TaskSettled>().at(0);
    if (attempt == 3) {
      EXPECT_EQ(settled.to, To::failed);
      EXPECT_TRUE(test.scheduler.over());
      return;
    }
    EXPECT_EQ(settled.to, To::again);
    EXPECT_GE(settled.retry_in * 4, last);  // doubled, give or take the jitter
    last = settled.retry_in;
    EXPECT_EQ(test.scheduler.next_tick(), test.now + settled.retry_in);
    test.now += settled.retry_in - Duration(1);
    test.tick();
    EXPECT_THAT(test.effects, IsEmpty());
    test.now += Duration(1);
    test.tick();
  }
}

TEST(Scheduler, PausesDoubleAndAreJittered) {
  TestScheduler test(tasks_of(2, 1000, 3));
  test.join(1, cpu(2000));
  std::vector<TaskSettled> last;
  for (int attempt = 1; attempt <= 3; ++attempt) {
    for (const auto& start : test.take<StartAttempt>()) {
      test.scheduler.ended(start.token, Verdict::failed, test.now, test.effects);
    }
    last = test.take<TaskSettled>();
    test.now += std::chrono::seconds(9);
    test.tick();
  }
  ASSERT_EQ(last.size(), 2U);
  EXPECT_NE(last[0].retry_in, last[1].retry_in);
  for (const auto& settled : last) {
    EXPECT_GE(settled.retry_in, std::chrono::seconds(1));  // 2 s, ±50 %
    EXPECT_LE(settled.retry_in, std::chrono::seconds(3));
  }
}

TEST(Scheduler, APermanentFailureIsNotRetried) {
  TestScheduler test(tasks_of(1, 1000, 5));
  test.join(1, cpu(1000));
  test.end(test.take<StartAttempt>().at(0).token, Verdict::permanent);
  EXPECT_EQ(test.take<TaskSettled>().at(0).to, To::failed);
}

TEST(Scheduler, StaleTokenChangesNothingAndIsCounted) {
  TestScheduler test(tasks_of(2));
  test.join(1, cpu(1000));
  const auto token = test.take<StartAttempt>().at(0).token;
  test.end(token);
  test.effects.clear();
  test.end(token);
  test.end({12345}, Verdict::failed);
  EXPECT_THAT(test.effects, IsEmpty());
  EXPECT_EQ(test.scheduler.stale(), 2);
}

TEST(Scheduler, StopCancelsOnceAndStartsNothing) {
  TestScheduler test(tasks_of(5, 1000, 3));
  test.join(1, cpu(2000));
  const auto starts = test.take<StartAttempt>();
  test.scheduler.stop(test.effects);
  test.scheduler.stop(test.effects);
  EXPECT_EQ(test.take<CancelAttempt>().size(), 2U);
  EXPECT_THAT(test.scheduler.needs(), IsEmpty());
  for (const auto& start : starts) test.end(start.token, Verdict::stopped);
  EXPECT_TRUE(test.scheduler.over());
  EXPECT_THAT(test.started(), IsEmpty());
}

/// By a seed of ./dev simulate.
TEST(Scheduler, AFailureDuringAStopKeepsItsRetries) {
  TestScheduler test(tasks_of(1, 1000, 1));
  test.join(1, cpu(1000));
  const auto token = test.take<StartAttempt>().at(0).token;
  test.scheduler.stop(test.effects);
  test.end(token, Verdict::failed);
  const auto settled = test.take<TaskSettled>();
  ASSERT_EQ(settled.size(), 1U);
  EXPECT_EQ(settled[0].to, To::stopped) << "a resume tries it again";
}

TEST(Scheduler, FirstFailureHaltsWhenAsked) {
  TestScheduler test(tasks_of(5), {.stop_on_failure = true});
  test.join(1, cpu(1000));
  test.end(test.take<StartAttempt>().at(0).token, Verdict::failed);
  EXPECT_THAT(test.started(), IsEmpty());
  EXPECT_TRUE(test.scheduler.over());
}

TEST(Scheduler, HaltsAfterMoreFailuresThanAllowed) {
  TestScheduler test(tasks_of(5), {.stop_on_failure = true, .allowed_failures = 1});
  test.join(1, cpu(1000));
  test.end(test.take<StartAttempt>().at(0).token, Verdict::failed);
  EXPECT_FALSE(test.scheduler.over());
  test.end(test.take<StartAttempt>().at(0).token, Verdict::failed);
  EXPECT_THAT(test.started(), IsEmpty());
  EXPECT_TRUE(test.scheduler.over());
}

TEST(Scheduler, ClosedWorkerFinishesAndGetsNothingMore) {
  TestScheduler test(tasks_of(3));
  test.join(1, cpu(1000));
  test.scheduler.close({1});
  test.end(test.take<StartAttempt>().at(0).token);
  EXPECT_THAT(test.started(), IsEmpty());
  EXPECT_TRUE(test.scheduler.idle({1}));
  test.scheduler.left({1});
  EXPECT_EQ(test.scheduler.needs().size(), 1U);
  test.join(2, cpu(1000));
  EXPECT_THAT(test.started(), ElementsAre(2));
}

// Tasks that wait for the caller.

TEST(SchedulerGate, AGatedTaskStartsOnlyAfterProceed) {
  auto tasks = tasks_of(2);
  tasks[0].gated = true;
  TestScheduler test(tasks);
  test.join(1, cpu(8000));
  EXPECT_THAT(test.started(), ElementsAre(2));
  EXPECT_EQ(test.scheduler.needs().size(), 0U);
  test.scheduler.proceed({1}, test.effects);
  const auto start = test.take<StartAttempt>().at(0);
  EXPECT_EQ(start.task.value, 1);
  test.scheduler.settle({1}, test.effects);  // it runs: changes nothing
  EXPECT_THAT(test.effects, IsEmpty());
  EXPECT_EQ(test.scheduler.running(), 2U);
}

TEST(SchedulerGate, CachedTasksAreSettledWithoutAnAttempt) {
  auto tasks = tasks_of(2);
  for (auto& task : tasks) task.gated = true;
  TestScheduler test(tasks);
  test.join(1, cpu(8000));
  for (const std::int64_t number : {1, 2}) {
    EXPECT_FALSE(test.scheduler.over());
    EXPECT_TRUE(test.scheduler.quiet());
    test.scheduler.settle({number}, test.effects);
    test.scheduler.check();
  }
  EXPECT_THAT(test.effects, IsEmpty());
  EXPECT_TRUE(test.scheduler.over());
}

TEST(SchedulerGate, SettledFromOutsideInEveryQueue) {
  auto tasks = tasks_of(4, 1000, 1);
  tasks[3].settled = true;
  TestScheduler test(tasks);
  test.scheduler.settle({1}, test.effects);  // ready
  test.join(1, cpu(1000));
  test.end(test.take<StartAttempt>().at(0).token, Verdict::failed);
  test.scheduler.settle({2}, test.effects);  // delayed
  test.scheduler.check();
  EXPECT_FALSE(test.scheduler.next_tick());
  test.end(test.take<StartAttempt>().at(0).token);
  EXPECT_TRUE(test.scheduler.over());
}

// Workers.

TEST(SchedulerWorkers, AnIdleStealerIsClosedOnceThereIsNothingToTake) {
  TestScheduler test(tasks_of(3, 1000, 1));
  test.join(1, cpu(1000));
  test.join(2, cpu(1000), Kind::stealer);
  const auto starts = test.take<StartAttempt>();
  ASSERT_EQ(starts.size(), 2U);
  EXPECT_EQ(starts[1].worker.value, 2);
  test.end(starts[1].token);
  const auto third = test.take<StartAttempt>().at(0);
  EXPECT_EQ(third.worker.value, 2);
  test.end(third.token, Verdict::failed);
  EXPECT_FALSE(test.scheduler.closed({2}));  // a retry is due soon
  test.end(starts[0].token);
  test.now += std::chrono::seconds(1);
  test.tick();
  const auto retry = test.take<StartAttempt>().at(0);
  EXPECT_EQ(retry.worker.value, 1);  // the primary first
  test.tick();
  EXPECT_TRUE(test.scheduler.closed({2}));
  test.scheduler.left({2});
  test.end(retry.token);
  EXPECT_FALSE(test.scheduler.closed({1}));  // the primary stays
}

TEST(SchedulerWorkers, AStealerThatComesTooLateIsClosedAtOnce) {
  TestScheduler test(tasks_of(1));
  test.join(1, cpu(1000));
  test.join(2, cpu(1000), Kind::stealer);
  EXPECT_TRUE(test.scheduler.closed({2}));
}

TEST(SchedulerWorkers, AttemptsOfALostWorkerAreStaleAndTheirTasksKeepTheirRetries) {
  TestScheduler test(tasks_of(2, 1000, 0));
  test.join(1, cpu(2000));
  const auto old = test.take<StartAttempt>();
  test.lose(1, {old[0].token, old[1].token});
  for (const auto& settled : test.take<TaskSettled>()) EXPECT_EQ(settled.to, To::again);
  test.join(2, cpu(2000));
  test.now += std::chrono::seconds(1);
  test.tick();
  EXPECT_EQ(test.take<StartAttempt>().size(), 2U);
  for (const auto& start : old) test.end(start.token);
  EXPECT_THAT(test.effects, IsEmpty());
  EXPECT_EQ(test.scheduler.stale(), 2);
  EXPECT_EQ(test.scheduler.running(), 2U);
}

TEST(SchedulerWorkers, AnEarlierRunnersAttemptsGoOn) {
  auto tasks = tasks_of(6);
  for (int i = 0; i < 3; ++i) tasks[static_cast<std::size_t>(i)].gated = true;  // ran before
  tasks[4].gated = true;
  TestScheduler test(tasks, {.epoch = 2});
  test.scheduler.proceed({3}, test.effects);  // was waited for long enough
  test.join(1, cpu(1000));
  EXPECT_THAT(test.started(), ElementsAre(3));
  const auto before = [](std::int64_t number) { return Token{(1LL << 32) + number}; };
  test.scheduler.joined({.id = {2},
                         .resources = cpu(3000),
                         .earlier = {{{1}, before(1)},
                                     {{2}, before(2), Verdict::done},
                                     {{3}, before(3)},
                                     {{3}, before(4), Verdict::done},
                                     {{5}, before(5)}}},
                        test.now, test.effects);
  test.scheduler.check();
  const auto effects = std::exchange(test.effects, {});
  ASSERT_EQ(effects.size(), 3U);
  EXPECT_EQ(std::get<TaskSettled>(effects[0]).token, before(2));
  EXPECT_EQ(std::get<CancelAttempt>(effects[1]).token, before(3));
  EXPECT_EQ(std::get<StartAttempt>(effects[2]).task.value, 4);
  test.end(before(1));
  test.end(before(5));
  const auto settled = test.take<TaskSettled>();
  ASSERT_EQ(settled.size(), 2U);
  EXPECT_EQ(settled[0].to, To::done);
  EXPECT_EQ(settled[1].task.value, 5);
  EXPECT_EQ(test.scheduler.stale(), 1);  // of 3, which runs anew
}

TEST(SchedulerWorkers, AnEarlierEndCountsWhileTheTaskBacksOff) {
  TestScheduler test(tasks_of(1), {.epoch = 2});
  test.scheduler.joined({.id = {1},
                         .resources = cpu(1000),
                         .earlier = {{{1}, {7}, Verdict::infrastructure_failure},
                                     {{1}, {8}, Verdict::infrastructure_failure}}},
                        test.now, test.effects);
  test.scheduler.check();
  EXPECT_EQ(test.take<TaskSettled>().size(), 2U);
  test.now += std::chrono::seconds(3);
  test.tick();
  EXPECT_THAT(test.started(), ElementsAre(1));
}

TEST(SchedulerWorkers, WhatAnEarlierRunnerStoppedGoesOn) {
  auto tasks = tasks_of(2);
  tasks[0].gated = true;
  TestScheduler test(tasks, {.epoch = 2});
  test.scheduler.joined(
      {.id = {1}, .resources = cpu(1000), .earlier = {{{1}, {7}, Verdict::stopped}}}, test.now,
      test.effects);
  const auto settled = test.take<TaskSettled>();
  ASSERT_EQ(settled.size(), 1U);
  EXPECT_EQ(settled[0].to, To::again);
}

TEST(SchedulerWorkers, WhatComesBackBeyondItsRoomTakesThatOfOneWhoseEndIsStillToBeHeard) {
  auto tasks = tasks_of(4, 2000);
  tasks[2].resources = cpu(2500);
  TestScheduler test(tasks, {.epoch = 2});
  test.scheduler.joined(
      {.id = {1}, .resources = cpu(3000), .earlier = {{{1}, {7}}, {{2}, {8}}, {{3}, {9}}}},
      test.now, test.effects);
  test.scheduler.check();
  EXPECT_EQ(test.scheduler.running(), 1U);
  const auto cancelled = test.take<CancelAttempt>();
  ASSERT_EQ(cancelled.size(), 1U) << "but nothing else holds what this one takes";
  EXPECT_EQ(cancelled[0].token.value, 9);
  test.end({7});
  EXPECT_EQ(test.scheduler.running(), 1U);
  EXPECT_TRUE(test.take<StartAttempt>().empty());
  test.end({8});
  EXPECT_THAT(test.started(), ElementsAre(3));
}

TEST(SchedulerWorkers, WhatIsBehindTheFenceDoesNotComeBack) {
  auto tasks = tasks_of(1);
  tasks[0].fence = {6};
  tasks[0].gated = true;
  TestScheduler test(tasks, {.epoch = 2});
  const auto come_back = [&](std::int64_t worker, std::int64_t token) {
    test.scheduler.joined({.id = {worker}, .resources = cpu(1000), .earlier = {{{1}, {token}}}},
                          test.now, test.effects);
    return test.take<CancelAttempt>().empty();
  };
  EXPECT_FALSE(come_back(1, 5));
  EXPECT_TRUE(come_back(2, 7));
  test.scheduler.close({1});
  test.lose(2, {{7}});
  test.now += std::chrono::seconds(1);
  EXPECT_FALSE(come_back(3, 6));
  EXPECT_EQ(test.scheduler.running(), 1U);  // a new attempt
}

TEST(SchedulerWorkers, AnAttemptDoesNotComeBackOnceLost) {
  TestScheduler test(tasks_of(1));
  test.join(1, cpu(1000));
  const auto old = test.take<StartAttempt>().at(0).token;
  test.lose(1, {old});
  test.effects.clear();
  test.scheduler.joined({.id = {2}, .resources = cpu(1000), .earlier = {{{1}, old}}}, test.now,
                        test.effects);
  EXPECT_EQ(std::get<CancelAttempt>(test.effects.at(0)).token, old);
}

}  // namespace
}  // namespace berth::schedule
