// What is sent to a worker before there is room for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "berth/schedule/schedule_testing.h"

namespace berth::schedule {
namespace {

using testing::cpu;
using ::testing::ElementsAre;
using testing::House;
using testing::tasks_of;

constexpr TaskNumber kLong{7};

std::vector<StartAttempt> send_ahead(House& house, std::size_t most, WorkerId worker = {1}) {
  house.scheduler.send_ahead(worker,
                             {.most = [&](TaskNumber) { return most; },
                              .ends_soon = [](auto task, auto) { return task != kLong; }},
                             house.effects);
  house.scheduler.check();
  return house.take<StartAttempt>();
}

TEST(SendAhead, EachTakesTheRoomOfTheOneBeforeIt) {
  House house(tasks_of(9), {.parallel = 2});
  house.join(1, cpu(4000));
  const auto first = house.take<StartAttempt>();
  ASSERT_EQ(first.size(), 2U);
  const auto ahead = send_ahead(house, 2);
  ASSERT_EQ(ahead.size(), 4U) << "two behind each";
  EXPECT_EQ(ahead[0].behind, first[0].token);
  EXPECT_EQ(ahead[1].behind, first[1].token) << "evenly";
  EXPECT_EQ(ahead[2].behind, ahead[0].token);
  EXPECT_EQ(house.scheduler.running(), 2U);
  EXPECT_TRUE(send_ahead(house, 2).empty());

  house.end(first[0].token);
  EXPECT_TRUE(house.started().empty()) << "its room is taken already";
  EXPECT_EQ(house.scheduler.running(), 2U);
  EXPECT_EQ(send_ahead(house, 2).size(), 1U);
  for (const auto& start : {first[1], ahead[1], ahead[3]}) house.end(start.token);
  EXPECT_THAT(house.started(), ElementsAre(8)) << "nobody waited for that room";
}

TEST(SendAhead, OnlyWhatIsFirstInTheQueueAndOfTheSameResources) {
  auto tasks = tasks_of(4);
  tasks[2].resources = cpu(2000);
  House house(tasks);
  house.join(1, cpu(1000));
  house.take<StartAttempt>();
  EXPECT_EQ(send_ahead(house, 8).size(), 1U) << "the third is not overtaken by the fourth";
}

TEST(SendAhead, NotBehindWhatIsLong) {
  auto tasks = tasks_of(9);
  tasks[6].priority = tasks[0].priority = 1;
  House house(tasks);
  house.join(1, cpu(2000));
  const auto first = house.take<StartAttempt>();
  ASSERT_EQ(first.at(1).task, kLong);
  const auto ahead = send_ahead(house, 2);
  ASSERT_EQ(ahead.size(), 2U);
  EXPECT_EQ(ahead[0].behind, first[0].token);
  EXPECT_EQ(ahead[1].behind, ahead[0].token);
}

TEST(SendAhead, WhatComesBackStaysWithinWhatMayRunSideBySide) {
  auto tasks = tasks_of(3);
  House house(tasks, {.epoch = 2, .parallel = 1});
  house.scheduler.joined(
      {.id = {1}, .resources = cpu(4000), .earlier = {{{1}, {7}}, {{2}, {8}}, {{3}, {9}}}},
      house.now, house.effects);
  house.scheduler.check();
  EXPECT_TRUE(house.take<CancelAttempt>().empty());
  EXPECT_EQ(house.scheduler.running(), 1U);
  EXPECT_TRUE(house.scheduler.waits({9}));
  for (const std::int64_t token : {7, 8, 9}) house.end({token});
  EXPECT_TRUE(house.scheduler.over());
}

TEST(SendAhead, NotWhereTheFirstFailureIsToEndItAll) {
  House house(tasks_of(4), {.stop_on_failure = true});
  house.join(1, cpu(1000));
  house.take<StartAttempt>();
  EXPECT_TRUE(send_ahead(house, 8).empty());
}

TEST(SendAhead, NotToOneThatIsClosedAndNotAfterAStop) {
  House house(tasks_of(4));
  house.join(1, cpu(1000));
  house.take<StartAttempt>();
  house.scheduler.close({1});
  EXPECT_TRUE(send_ahead(house, 8).empty());
  house.join(2, cpu(1000));
  house.take<StartAttempt>();
  house.scheduler.stop(house.effects);
  EXPECT_TRUE(send_ahead(house, 8, {2}).empty());
}

TEST(SendAhead, WhatIsGivenBackIsReadyAgainAtOnceAndTheNextMovesUp) {
  House house(tasks_of(3));
  house.join(1, cpu(1000));
  const auto first = house.take<StartAttempt>();
  const auto ahead = send_ahead(house, 8);
  ASSERT_EQ(ahead.size(), 2U);
  house.join(2, cpu(1000));
  house.end(ahead[0].token, Verdict::given_back);
  const auto effects = house.effects;
  ASSERT_EQ(effects.size(), 2U);
  EXPECT_EQ(std::get<TaskSettled>(effects[0]).to, TaskSettled::To::again);
  EXPECT_EQ(std::get<StartAttempt>(effects[1]).worker, WorkerId{2}) << "where there is room";
  house.effects.clear();
  house.end(first[0].token);
  house.end(ahead[1].token);
  EXPECT_TRUE(house.scheduler.idle({1}));
  EXPECT_EQ(house.scheduler.free({1}), cpu(1000));
}

TEST(SendAhead, AStopEndsWhatWaitsAndALostWorkerLosesIt) {
  House house(tasks_of(3));
  house.join(1, cpu(1000));
  house.take<StartAttempt>();
  send_ahead(house, 1);
  house.lose(1);
  house.join(2, cpu(1000));
  EXPECT_EQ(house.take<StartAttempt>().size(), 1U);
  EXPECT_EQ(send_ahead(house, 8, {2}).size(), 2U);
  house.scheduler.stop(house.effects);
  const auto cancelled = house.take<CancelAttempt>();
  EXPECT_EQ(cancelled.size(), 3U);
  for (const auto& each : cancelled)
    house.end(each.token,
              each.token == cancelled[1].token ? Verdict::given_back : Verdict::stopped);
  EXPECT_TRUE(house.scheduler.over());
}

}  // namespace
}  // namespace berth::schedule
