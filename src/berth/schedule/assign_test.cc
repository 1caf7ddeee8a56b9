// Which task starts on which worker, and that no task waits for ever.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "berth/base/rng.h"
#include "berth/testing/schedule.h"

namespace berth::schedule {
namespace {

using testing::cpu;
using ::testing::ElementsAre;
using testing::tasks_of;
using testing::TestScheduler;

TEST(SchedulerRetry, OnAnotherWorkerThanTheOneOnWhichItFailed) {
  TestScheduler test(tasks_of(1, 1000, 2),
                     {.backoff_first = Duration(1), .backoff_most = Duration(1)});
  test.join(1, cpu(1000));
  test.join(2, cpu(1000));
  const auto failed_on = [&](WorkerId worker) {
    const auto starts = test.take<StartAttempt>();
    EXPECT_EQ(starts.size(), 1U);
    EXPECT_EQ(starts.at(0).worker, worker);
    test.end(starts.at(0).token, Verdict::failed);
    test.now += std::chrono::seconds(1);
    test.tick();
  };
  failed_on({1});
  failed_on({2});
  const auto last = test.take<StartAttempt>();
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].worker, WorkerId{1}) << "not where it failed last";
}

TEST(SchedulerRetry, OnAnotherMachineThanTheOneOnWhichItFailed) {
  TestScheduler test(tasks_of(1, 1000, 1),
                     {.backoff_first = Duration(1), .backoff_most = Duration(1)});
  const auto join = [&](std::int64_t id, std::int64_t machine) {
    test.scheduler.joined({.id = {id}, .resources = cpu(1000), .machine = machine}, test.now,
                          test.effects);
  };
  join(1, 7);
  const auto first = test.take<StartAttempt>();
  join(2, 7);
  join(3, 8);
  ASSERT_EQ(first.size(), 1U);
  test.end(first[0].token, Verdict::failed);
  test.now += std::chrono::seconds(1);
  test.tick();
  const auto again = test.take<StartAttempt>();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].worker, WorkerId{3});
}

/// A task that failed on machine 7, is ready again, and has an idle worker there.
TestScheduler failed_on_the_only_machine(int tasks) {
  TestScheduler test(tasks_of(tasks, 1000, 1), {.backoff_first = Duration(1),
                                                .backoff_most = Duration(1),
                                                .seeks_elsewhere = std::chrono::seconds(20)});
  test.scheduler.joined({.id = {1}, .resources = cpu(1000), .machine = 7}, test.now, test.effects);
  test.end(test.take<StartAttempt>().at(0).token, Verdict::failed);
  test.now += std::chrono::seconds(1);
  test.tick();
  return test;
}

TEST(SchedulerRetry, WaitsForAnotherMachineThanTheOneOnWhichItFailed) {
  TestScheduler test = failed_on_the_only_machine(1);
  EXPECT_THAT(test.started(), ElementsAre());
  EXPECT_EQ(test.scheduler.avoided({1}), 7);
  EXPECT_THAT(test.scheduler.wanting(), ElementsAre(TaskNumber{1}));
  test.scheduler.joined({.id = {2}, .resources = cpu(1000), .machine = 8}, test.now, test.effects);
  const auto again = test.take<StartAttempt>();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].worker, WorkerId{2});
}

TEST(SchedulerRetry, WaitsNoLongerThanItMayForAnotherMachine) {
  TestScheduler test = failed_on_the_only_machine(1);
  ASSERT_TRUE(test.scheduler.next_tick());
  test.now = *test.scheduler.next_tick();
  test.tick();
  EXPECT_THAT(test.started(), ElementsAre(1));
}

TEST(SchedulerRetry, SettlesForTheMachineOnWhichItFailed) {
  TestScheduler test = failed_on_the_only_machine(1);
  test.scheduler.settle_for({1}, test.effects);
  EXPECT_THAT(test.started(), ElementsAre(1));
}

TEST(SchedulerRetry, LeavesTheMachineItAvoidsToOthers) {
  TestScheduler test = failed_on_the_only_machine(3);
  const auto second = test.take<StartAttempt>();
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].task, TaskNumber{2});
  test.end(second[0].token);
  EXPECT_THAT(test.started(), ElementsAre(3)) << "while the first seeks another";
}

TEST(SchedulerRetry, OnTheSameWorkerWhereThereIsNoOther) {
  TestScheduler test(tasks_of(1, 1000, 1),
                     {.backoff_first = Duration(1), .backoff_most = Duration(1)});
  test.join(1, cpu(1000));
  test.end(test.take<StartAttempt>().at(0).token, Verdict::failed);
  test.now += std::chrono::seconds(1);
  test.tick();
  EXPECT_THAT(test.started(), ElementsAre(1));
}

TEST(SchedulerBackfill, SmallOnesPassTheHeadOnlySoOften) {
  auto tasks = tasks_of(2);
  tasks[1].resources = cpu(2000);
  TestScheduler test(tasks, {.backfill_limit = 3});
  test.join(1, cpu(2000));
  auto running = test.take<StartAttempt>();
  ASSERT_EQ(running.size(), 1U);
  int passed = 0;
  for (int i = 3; i < 50; ++i) {  // one always runs while the next comes: 2 would never fit
    test.add({.number = {i}, .resources = cpu(1000)});
    for (const auto& start : test.take<StartAttempt>()) {
      running.push_back(start);
      passed += start.task.value > 2 ? 1 : 0;
      if (start.task.value != 2) continue;
      EXPECT_EQ(passed, 3);
      return;
    }
    test.end(running.front().token);
    running.erase(running.begin());
    for (const auto& start : test.take<StartAttempt>()) {
      running.push_back(start);
      if (start.task.value != 2) {
        ++passed;
        continue;
      }
      EXPECT_EQ(passed, 3);
      return;
    }
  }
  ADD_FAILURE() << "starved";
}

TEST(SchedulerBackfill, WhatTheHeadLeavesIsUsed) {
  TestScheduler test({}, {.backfill_limit = 0});
  test.join(1, cpu(8000, 2));
  test.add({.number = {1}, .resources = cpu(1000, 1)});
  test.add({.number = {2}, .resources = cpu(6000, 2)});  // waits for the card of 1
  test.add({.number = {3}, .resources = cpu(2000)});     // beside both
  test.add({.number = {4}, .resources = cpu(2000)});     // would delay 2
  auto starts = test.take<StartAttempt>();
  ASSERT_EQ(starts.size(), 2U);
  EXPECT_EQ(starts[1].task.value, 3);
  ASSERT_TRUE(test.scheduler.backfill_hold());
  EXPECT_EQ(test.scheduler.backfill_hold()->task.value, 2);
  test.end(starts[1].token);
  EXPECT_THAT(test.started(), ElementsAre(4));  // its turn beside
  test.end(starts[0].token);
  EXPECT_THAT(test.started(), ElementsAre(2));
  EXPECT_FALSE(test.scheduler.backfill_hold());
}

TEST(SchedulerBackfill, WhatNoWorkerCouldHoldHoldsNobodyUp) {
  auto tasks = tasks_of(40);
  tasks[0].resources = cpu(64000);
  TestScheduler test(tasks, {.backfill_limit = 2});
  test.join(1, cpu(1000));
  for (int i = 2; i <= 40; ++i) {
    const auto start = test.take<StartAttempt>().at(0);
    EXPECT_EQ(start.task.value, i);
    test.end(start.token);
  }
  EXPECT_FALSE(test.scheduler.backfill_hold());
  EXPECT_EQ(test.scheduler.needs().at(0).min, cpu(64000));
}

TEST(SchedulerBackfill, WhatPassesOnAWorkerTooSmallForTheHeadDoesNotCount) {
  TestScheduler test({}, {.backfill_limit = 2});
  test.join(1, cpu(2000));
  test.join(2, cpu(1000, 1));
  test.add({.number = {1}, .resources = cpu(1000)});
  test.add({.number = {2}, .resources = cpu(2000)});
  for (int i = 3; i < 20; ++i) test.add({.number = {i}, .resources = cpu(1000, 1)});
  (void)test.take<StartAttempt>();
  for (std::int64_t i = 2; i < 18; ++i) test.end({(1LL << 32) + i});
  EXPECT_EQ(test.started().size(), 16U);
  EXPECT_FALSE(test.scheduler.backfill_hold());
}

TEST(SchedulerBackfill, AHeldWorkerThatGoesIsReplaced) {
  TestScheduler test({}, {.backfill_limit = 0});
  test.join(1, cpu(2000));
  test.join(2, cpu(2000));
  for (int i = 1; i <= 3; ++i) test.add({.number = {i}, .resources = cpu(1000)});
  test.add({.number = {4}, .resources = cpu(2000)});
  ASSERT_TRUE(test.scheduler.backfill_hold());
  EXPECT_EQ(test.scheduler.backfill_hold()->worker.value, 2);  // one to wait for, not two
  test.lose(2, {{(1LL << 32) + 3}});
  ASSERT_TRUE(test.scheduler.backfill_hold());
  EXPECT_EQ(test.scheduler.backfill_hold()->worker.value, 1);
  test.scheduler.close({1});
  EXPECT_FALSE(test.scheduler.backfill_hold());
}

TEST(SchedulerBackfill, APriorityGoesToTheHeldWorkerToo) {
  TestScheduler test({}, {.backfill_limit = 0});
  test.join(1, cpu(2000));
  test.add({.number = {1}, .resources = cpu(1000)});
  test.add({.number = {2}, .resources = cpu(2000)});
  test.add({.number = {3}, .resources = cpu(1000)});
  EXPECT_THAT(test.started(), ElementsAre(1));
  test.add({.number = {4}, .resources = cpu(1000), .priority = 1});
  EXPECT_THAT(test.started(), ElementsAre(4));
}

TEST(SchedulerWorkers, APrimaryWorkerIsFilledBeforeAStealer) {
  TestScheduler test({});
  test.add({.number = {1}, .resources = cpu(3000)});  // keeps the stealer busy
  test.join(1, cpu(4000), Kind::stealer);
  test.join(2, cpu(1000));
  (void)test.take<StartAttempt>();
  test.add({.number = {2}, .resources = cpu(1000)});
  EXPECT_EQ(test.take<StartAttempt>().at(0).worker.value, 2);
}

TEST(SchedulerWorkers, CardsAreLeftToWhatNeedsThem) {
  TestScheduler test({});
  test.join(1, cpu(4000, 4));
  test.join(2, cpu(4000));
  test.add({.number = {1}, .resources = cpu(1000)});
  EXPECT_EQ(test.take<StartAttempt>().at(0).worker.value, 2);
}

/// The longest time that a task as large as a whole worker was at the head of the queue while small
/// tasks came without end, in units of the longest task.
double longest_wait(std::uint64_t seed, int backfill_limit) {
  constexpr std::int64_t kLongestMs = 1000;
  Rng rng(seed);
  TestScheduler test({}, {.backfill_limit = backfill_limit});
  for (auto id = static_cast<std::int64_t>(1 + rng.below(3)); id > 0; --id)
    test.join(id, cpu(4000));
  std::int64_t added = 0;
  std::set<std::int64_t> waiting;
  const auto add = [&](std::int64_t milli) {
    waiting.insert(++added);
    test.add({.number = {added}, .resources = cpu(milli)});
  };
  std::multimap<Mono, Token> ends;
  double longest = 0;
  std::int64_t large = 0;
  std::optional<Mono> heads_since;
  for (int event = 0; event < 1000; ++event) {
    if (large == 0) add(4000);
    if (large == 0) large = added;
    while (waiting.size() < 10) add(static_cast<std::int64_t>(1 + rng.below(3)) * 500);
    for (const auto& start : test.take<StartAttempt>()) {
      ends.emplace(test.now + from_ms(static_cast<std::int64_t>(1 + rng.below(kLongestMs))),
                   start.token);
      waiting.erase(start.task.value);
      if (start.task.value != large) continue;
      large = 0;
      heads_since.reset();
    }
    if (large == *waiting.begin() && !heads_since) heads_since = test.now;
    if (heads_since)
      longest = std::max(longest, static_cast<double>(to_ms(test.now - *heads_since)));
    if (ends.empty()) continue;
    test.now = ends.begin()->first;
    test.end(ends.extract(ends.begin()).mapped());
  }
  return longest / kLongestMs;
}

/// Few tasks may backfill past it; then one worker runs empty, for as long as its longest task
/// takes. Without the limit the large task would wait for as long as small ones come.
TEST(SchedulerBackfill, NoLargeTaskIsStarved) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    ASSERT_LE(longest_wait(seed, 0), 1) << "seed " << seed;
    ASSERT_LE(longest_wait(seed, 8), 4) << "seed " << seed;
    ASSERT_GT(longest_wait(seed, 1'000'000), 30) << "seed " << seed;
  }
}

}  // namespace
}  // namespace berth::schedule
