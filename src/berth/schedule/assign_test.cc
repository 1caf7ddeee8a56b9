// Who gets what, and that nobody waits for ever.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "berth/base/rng.h"
#include "berth/schedule/schedule_testing.h"

namespace berth::schedule {
namespace {

using testing::cpu;
using ::testing::ElementsAre;
using testing::House;
using testing::tasks_of;

TEST(SchedulerRetry, OnAnotherWorkerThanTheOneOnWhichItFailed) {
  House house(tasks_of(1, 1000, 2), {.backoff_first = Duration(1), .backoff_most = Duration(1)});
  house.join(1, cpu(1000));
  house.join(2, cpu(1000));
  const auto failed_on = [&](WorkerId worker) {
    const auto starts = house.take<StartAttempt>();
    EXPECT_EQ(starts.size(), 1U);
    EXPECT_EQ(starts.at(0).worker, worker);
    house.end(starts.at(0).token, Verdict::failed);
    house.now += std::chrono::seconds(1);
    house.tick();
  };
  failed_on({1});
  failed_on({2});
  const auto last = house.take<StartAttempt>();
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].worker, WorkerId{1}) << "not where it failed last";
}

TEST(SchedulerRetry, OnAnotherMachineThanTheOneOnWhichItFailed) {
  House house(tasks_of(1, 1000, 1), {.backoff_first = Duration(1), .backoff_most = Duration(1)});
  const auto join = [&](std::int64_t id, std::int64_t machine) {
    house.scheduler.joined({.id = {id}, .resources = cpu(1000), .machine = machine}, house.now,
                           house.effects);
  };
  join(1, 7);
  const auto first = house.take<StartAttempt>();
  join(2, 7);
  join(3, 8);
  ASSERT_EQ(first.size(), 1U);
  house.end(first[0].token, Verdict::failed);
  house.now += std::chrono::seconds(1);
  house.tick();
  const auto again = house.take<StartAttempt>();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].worker, WorkerId{3});
}

/// One that failed on machine 7, is ready again, and has an idle worker there.
House failed_on_the_only_machine(int tasks) {
  House house(tasks_of(tasks, 1000, 1), {.backoff_first = Duration(1),
                                         .backoff_most = Duration(1),
                                         .seeks_elsewhere = std::chrono::seconds(20)});
  house.scheduler.joined({.id = {1}, .resources = cpu(1000), .machine = 7}, house.now,
                         house.effects);
  house.end(house.take<StartAttempt>().at(0).token, Verdict::failed);
  house.now += std::chrono::seconds(1);
  house.tick();
  return house;
}

TEST(SchedulerRetry, WaitsForAnotherMachineThanTheOneOnWhichItFailed) {
  House house = failed_on_the_only_machine(1);
  EXPECT_THAT(house.started(), ElementsAre());
  EXPECT_EQ(house.scheduler.avoided({1}), 7);
  EXPECT_THAT(house.scheduler.wanting(), ElementsAre(TaskNumber{1}));
  house.scheduler.joined({.id = {2}, .resources = cpu(1000), .machine = 8}, house.now,
                         house.effects);
  const auto again = house.take<StartAttempt>();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].worker, WorkerId{2});
}

TEST(SchedulerRetry, WaitsNoLongerThanItMayForAnotherMachine) {
  House house = failed_on_the_only_machine(1);
  ASSERT_TRUE(house.scheduler.next_tick());
  house.now = *house.scheduler.next_tick();
  house.tick();
  EXPECT_THAT(house.started(), ElementsAre(1));
}

TEST(SchedulerRetry, SettlesForTheMachineOnWhichItFailed) {
  House house = failed_on_the_only_machine(1);
  house.scheduler.settle_for({1}, house.effects);
  EXPECT_THAT(house.started(), ElementsAre(1));
}

TEST(SchedulerRetry, LeavesTheMachineItAvoidsToOthers) {
  House house = failed_on_the_only_machine(3);
  const auto second = house.take<StartAttempt>();
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].task, TaskNumber{2});
  house.end(second[0].token);
  EXPECT_THAT(house.started(), ElementsAre(3)) << "while the first seeks another";
}

TEST(SchedulerRetry, OnTheSameWorkerWhereThereIsNoOther) {
  House house(tasks_of(1, 1000, 1), {.backoff_first = Duration(1), .backoff_most = Duration(1)});
  house.join(1, cpu(1000));
  house.end(house.take<StartAttempt>().at(0).token, Verdict::failed);
  house.now += std::chrono::seconds(1);
  house.tick();
  EXPECT_THAT(house.started(), ElementsAre(1));
}

TEST(SchedulerBackfill, SmallOnesPassTheHeadOnlySoOften) {
  auto tasks = tasks_of(2);
  tasks[1].resources = cpu(2000);
  House house(tasks, {.overtakings = 3});
  house.join(1, cpu(2000));
  auto running = house.take<StartAttempt>();
  ASSERT_EQ(running.size(), 1U);
  int passed = 0;
  for (int i = 3; i < 50; ++i) {  // one always runs while the next comes: 2 would never fit
    house.add({.number = {i}, .resources = cpu(1000)});
    for (const auto& start : house.take<StartAttempt>()) {
      running.push_back(start);
      passed += start.task.value > 2 ? 1 : 0;
      if (start.task.value != 2) continue;
      EXPECT_EQ(passed, 3);
      return;
    }
    house.end(running.front().token);
    running.erase(running.begin());
    for (const auto& start : house.take<StartAttempt>()) {
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
  House house({}, {.overtakings = 0});
  house.join(1, cpu(8000, 2));
  house.add({.number = {1}, .resources = cpu(1000, 1)});
  house.add({.number = {2}, .resources = cpu(6000, 2)});  // waits for the card of 1
  house.add({.number = {3}, .resources = cpu(2000)});     // beside both
  house.add({.number = {4}, .resources = cpu(2000)});     // would delay 2
  auto starts = house.take<StartAttempt>();
  ASSERT_EQ(starts.size(), 2U);
  EXPECT_EQ(starts[1].task.value, 3);
  ASSERT_TRUE(house.scheduler.kept());
  EXPECT_EQ(house.scheduler.kept()->task.value, 2);
  house.end(starts[1].token);
  EXPECT_THAT(house.started(), ElementsAre(4));  // its turn beside
  house.end(starts[0].token);
  EXPECT_THAT(house.started(), ElementsAre(2));
  EXPECT_FALSE(house.scheduler.kept());
}

TEST(SchedulerBackfill, WhatNoWorkerCouldHoldHoldsNobodyUp) {
  auto tasks = tasks_of(40);
  tasks[0].resources = cpu(64000);
  House house(tasks, {.overtakings = 2});
  house.join(1, cpu(1000));
  for (int i = 2; i <= 40; ++i) {
    const auto start = house.take<StartAttempt>().at(0);
    EXPECT_EQ(start.task.value, i);
    house.end(start.token);
  }
  EXPECT_FALSE(house.scheduler.kept());
  EXPECT_EQ(house.scheduler.needs().at(0).min, cpu(64000));
}

TEST(SchedulerBackfill, WhatPassesOnAWorkerTooSmallForTheHeadDoesNotCount) {
  House house({}, {.overtakings = 2});
  house.join(1, cpu(2000));
  house.join(2, cpu(1000, 1));
  house.add({.number = {1}, .resources = cpu(1000)});
  house.add({.number = {2}, .resources = cpu(2000)});
  for (int i = 3; i < 20; ++i) house.add({.number = {i}, .resources = cpu(1000, 1)});
  (void)house.take<StartAttempt>();
  for (std::int64_t i = 2; i < 18; ++i) house.end({(1LL << 32) + i});
  EXPECT_EQ(house.started().size(), 16U);
  EXPECT_FALSE(house.scheduler.kept());
}

TEST(SchedulerBackfill, AKeptWorkerThatGoesIsReplaced) {
  House house({}, {.overtakings = 0});
  house.join(1, cpu(2000));
  house.join(2, cpu(2000));
  for (int i = 1; i <= 3; ++i) house.add({.number = {i}, .resources = cpu(1000)});
  house.add({.number = {4}, .resources = cpu(2000)});
  ASSERT_TRUE(house.scheduler.kept());
  EXPECT_EQ(house.scheduler.kept()->worker.value, 2);  // one to wait for, not two
  house.lose(2);
  ASSERT_TRUE(house.scheduler.kept());
  EXPECT_EQ(house.scheduler.kept()->worker.value, 1);
  house.scheduler.close({1});
  EXPECT_FALSE(house.scheduler.kept());
}

TEST(SchedulerBackfill, APriorityGoesToTheKeptWorkerToo) {
  House house({}, {.overtakings = 0});
  house.join(1, cpu(2000));
  house.add({.number = {1}, .resources = cpu(1000)});
  house.add({.number = {2}, .resources = cpu(2000)});
  house.add({.number = {3}, .resources = cpu(1000)});
  EXPECT_THAT(house.started(), ElementsAre(1));
  house.add({.number = {4}, .resources = cpu(1000), .priority = 1});
  EXPECT_THAT(house.started(), ElementsAre(4));
}

TEST(SchedulerWorkers, APrimaryWorkerIsFilledBeforeAStealer) {
  House house({});
  house.add({.number = {1}, .resources = cpu(3000)});  // holds the stealer
  house.join(1, cpu(4000), Kind::stealer);
  house.join(2, cpu(1000));
  (void)house.take<StartAttempt>();
  house.add({.number = {2}, .resources = cpu(1000)});
  EXPECT_EQ(house.take<StartAttempt>().at(0).worker.value, 2);
}

TEST(SchedulerWorkers, CardsAreLeftToWhatNeedsThem) {
  House house({});
  house.join(1, cpu(4000, 4));
  house.join(2, cpu(4000));
  house.add({.number = {1}, .resources = cpu(1000)});
  EXPECT_EQ(house.take<StartAttempt>().at(0).worker.value, 2);
}

/// How long, at most, a task as large as a whole worker stood at the head of the queue while small
/// ones came without end, in units of the longest task.
double longest_wait(std::uint64_t seed, int overtakings) {
  constexpr std::int64_t kLongestMs = 1000;
  Rng rng(seed);
  House house({}, {.overtakings = overtakings});
  for (auto id = static_cast<std::int64_t>(1 + rng.below(3)); id > 0; --id)
    house.join(id, cpu(4000));
  std::int64_t added = 0;
  std::set<std::int64_t> waiting;
  const auto add = [&](std::int64_t milli) {
    waiting.insert(++added);
    house.add({.number = {added}, .resources = cpu(milli)});
  };
  std::multimap<Mono, Token> ends;
  double longest = 0;
  std::int64_t large = 0;
  std::optional<Mono> heads_since;
  for (int event = 0; event < 1000; ++event) {
    if (large == 0) add(4000);
    if (large == 0) large = added;
    while (waiting.size() < 10) add(static_cast<std::int64_t>(1 + rng.below(3)) * 500);
    for (const auto& start : house.take<StartAttempt>()) {
      ends.emplace(house.now + from_ms(static_cast<std::int64_t>(1 + rng.below(kLongestMs))),
                   start.token);
      waiting.erase(start.task.value);
      if (start.task.value != large) continue;
      large = 0;
      heads_since.reset();
    }
    if (large == *waiting.begin() && !heads_since) heads_since = house.now;
    if (heads_since)
      longest = std::max(longest, static_cast<double>(to_ms(house.now - *heads_since)));
    if (ends.empty()) continue;
    house.now = ends.begin()->first;
    house.end(ends.extract(ends.begin()).mapped());
  }
  return longest / kLongestMs;
}

/// Few may pass it; then one worker runs empty, for as long as the longest task there.
/// Without the bound it would wait for as long as small ones come.
TEST(SchedulerBackfill, NoLargeTaskIsStarved) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    ASSERT_LE(longest_wait(seed, 0), 1) << "seed " << seed;
    ASSERT_LE(longest_wait(seed, 8), 4) << "seed " << seed;
    ASSERT_GT(longest_wait(seed, 1'000'000), 30) << "seed " << seed;
  }
}

}  // namespace
}  // namespace berth::schedule
