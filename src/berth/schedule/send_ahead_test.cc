// Attempts that are sent to a worker before there is room for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "berth/testing/schedule.h"

namespace berth::schedule {
namespace {

using testing::cpu;
using ::testing::ElementsAre;
using testing::tasks_of;
using testing::TestScheduler;

constexpr TaskNumber kLong{7};

std::vector<StartAttempt> send_ahead(TestScheduler& test, std::size_t most, WorkerId worker = {1}) {
  test.scheduler.send_ahead(worker,
                            {.most = [&](TaskNumber) { return most; },
                             .ends_soon = [](auto task, auto) { return task != kLong; }},
                            test.effects);
  test.scheduler.check();
  return test.take<StartAttempt>();
}

TEST(SendAhead, EachTakesTheRoomOfTheOneBeforeIt) {
  TestScheduler test(tasks_of(9), {.parallel = 2});
  test.join(1, cpu(4000));
  const auto first = test.take<StartAttempt>();
  ASSERT_EQ(first.size(), 2U);
  const auto ahead = send_ahead(test, 2);
  ASSERT_EQ(ahead.size(), 4U) << "two behind each";
  EXPECT_EQ(ahead[0].behind, first[0].token);
  EXPECT_EQ(ahead[1].behind, first[1].token) << "evenly";
  EXPECT_EQ(ahead[2].behind, ahead[0].token);
  EXPECT_EQ(test.scheduler.running(), 2U);
  EXPECT_TRUE(send_ahead(test, 2).empty());

  test.end(first[0].token);
  EXPECT_TRUE(test.started().empty()) << "its room is taken already";
  EXPECT_EQ(test.scheduler.running(), 2U);
  EXPECT_EQ(send_ahead(test, 2).size(), 1U);
  for (const auto& start : {first[1], ahead[1], ahead[3]}) test.end(start.token);
  EXPECT_THAT(test.started(), ElementsAre(8)) << "nobody waited for that room";
}

TEST(SendAhead, OnlyWhatIsFirstInTheQueueAndOfTheSameResources) {
  auto tasks = tasks_of(4);
  tasks[2].resources = cpu(2000);
  TestScheduler test(tasks);
  test.join(1, cpu(1000));
  test.take<StartAttempt>();
  EXPECT_EQ(send_ahead(test, 8).size(), 1U) << "the fourth does not pass the third";
}

TEST(SendAhead, NotBehindWhatIsLong) {
  auto tasks = tasks_of(9);
  tasks[6].priority = tasks[0].priority = 1;
  TestScheduler test(tasks);
  test.join(1, cpu(2000));
  const auto first = test.take<StartAttempt>();
  ASSERT_EQ(first.at(1).task, kLong);
  const auto ahead = send_ahead(test, 2);
  ASSERT_EQ(ahead.size(), 2U);
  EXPECT_EQ(ahead[0].behind, first[0].token);
  EXPECT_EQ(ahead[1].behind, ahead[0].token);
}

TEST(SendAhead, WhatComesBackStaysWithinWhatMayRunSideBySide) {
  auto tasks = tasks_of(3);
  TestScheduler test(tasks, {.epoch = 2, .parallel = 1});
  test.scheduler.joined(
      {.id = {1}, .resources = cpu(4000), .earlier = {{{1}, {7}}, {{2}, {8}}, {{3}, {9}}}},
      test.now, test.effects);
  test.scheduler.check();
  EXPECT_TRUE(test.take<CancelAttempt>().empty());
  EXPECT_EQ(test.scheduler.running(), 1U);
  EXPECT_TRUE(test.scheduler.waits({9}));
  for (const std::int64_t token : {7, 8, 9}) test.end({token});
  EXPECT_TRUE(test.scheduler.over());
}

TEST(SendAhead, NotWhereTheFirstFailureIsToEndItAll) {
  TestScheduler test(tasks_of(4), {.stop_on_failure = true});
  test.join(1, cpu(1000));
  test.take<StartAttempt>();
  EXPECT_TRUE(send_ahead(test, 8).empty());
}

TEST(SendAhead, NotToOneThatIsClosedAndNotAfterAStop) {
  TestScheduler test(tasks_of(4));
  test.join(1, cpu(1000));
  test.take<StartAttempt>();
  test.scheduler.close({1});
  EXPECT_TRUE(send_ahead(test, 8).empty());
  test.join(2, cpu(1000));
  test.take<StartAttempt>();
  test.scheduler.stop(test.effects);
  EXPECT_TRUE(send_ahead(test, 8, {2}).empty());
}

TEST(SendAhead, WhatIsGivenBackIsReadyAgainAtOnceAndTheNextMovesUp) {
  TestScheduler test(tasks_of(3));
  test.join(1, cpu(1000));
  const auto first = test.take<StartAttempt>();
  const auto ahead = send_ahead(test, 8);
  ASSERT_EQ(ahead.size(), 2U);
  test.join(2, cpu(1000));
  test.end(ahead[0].token, Verdict::given_back);
  const auto effects = test.effects;
  ASSERT_EQ(effects.size(), 2U);
  EXPECT_EQ(std::get<TaskSettled>(effects[0]).to, TaskSettled::To::again);
  EXPECT_EQ(std::get<StartAttempt>(effects[1]).worker, WorkerId{2}) << "where there is room";
  test.effects.clear();
  test.end(first[0].token);
  test.end(ahead[1].token);
  EXPECT_TRUE(test.scheduler.idle({1}));
  EXPECT_EQ(test.scheduler.free({1}), cpu(1000));
}

TEST(SendAhead, AStopEndsWhatWaitsAndALostWorkerLosesIt) {
  TestScheduler test(tasks_of(3));
  test.join(1, cpu(1000));
  const Token first = test.take<StartAttempt>().at(0).token;
  test.lose(1, {first, send_ahead(test, 1).at(0).token});
  test.now += std::chrono::seconds(1);
  test.join(2, cpu(1000));
  EXPECT_EQ(test.take<StartAttempt>().size(), 1U);
  EXPECT_EQ(send_ahead(test, 8, {2}).size(), 2U);
  test.scheduler.stop(test.effects);
  const auto cancelled = test.take<CancelAttempt>();
  EXPECT_EQ(cancelled.size(), 3U);
  for (const auto& each : cancelled)
    test.end(each.token, each.token == cancelled[1].token ? Verdict::given_back : Verdict::stopped);
  EXPECT_TRUE(test.scheduler.over());
}

}  // namespace
}  // namespace berth::schedule
