// Attempts that what they ran on failed: tried again without taking a retry, but not for ever.
#include <gtest/gtest.h>

#include "berth/schedule/schedule_testing.h"

namespace berth::schedule {
namespace {

using testing::cpu;
using testing::House;
using testing::tasks_of;
using To = TaskSettled::To;

TEST(Scheduler, ShortageTakesNoRetry) {
  House house(tasks_of(1, 1000, 0));
  house.join(1, cpu(1000));
  for (int attempt = 0; attempt < 7; ++attempt) {
    house.end(house.take<StartAttempt>().at(0).token, Verdict::infrastructure_failure);
    const auto settled = house.take<TaskSettled>().at(0);
    EXPECT_EQ(settled.to, To::again);
    EXPECT_LE(settled.retry_in, std::chrono::seconds(90));
    house.now += settled.retry_in;
    house.tick();
  }
  house.end(house.take<StartAttempt>().at(0).token);
  EXPECT_EQ(house.take<TaskSettled>().at(0).to, To::done);
}

TEST(Scheduler, AStartThatFailsForEverFailsItsTask) {
  House house(tasks_of(1, 1000, 5));
  house.join(1, cpu(1000));
  const Mono began = house.now;
  int attempts = 0;
  for (auto to = To::again; to == To::again && attempts < 100; ++attempts) {
    house.end(house.take<StartAttempt>().at(0).token, Verdict::infrastructure_failure);
    const auto settled = house.take<TaskSettled>().at(0);
    to = settled.to;
    house.now += settled.retry_in;
    house.tick();
  }
  EXPECT_EQ(attempts, 8);
  EXPECT_LE(house.now - began, std::chrono::seconds(100));
  EXPECT_GE(house.now - began, std::chrono::seconds(30));
}

TEST(Scheduler, InfrastructureFailuresAreCountedInARow) {
  House house(tasks_of(1, 1000, 100));
  house.join(1, cpu(1000));
  for (int attempt = 0; attempt < 40; ++attempt) {
    const bool fails = attempt % 5 == 4;
    house.end(house.take<StartAttempt>().at(0).token,
              fails ? Verdict::failed : Verdict::infrastructure_failure);
    const auto settled = house.take<TaskSettled>().at(0);
    ASSERT_EQ(settled.to, To::again) << attempt;
    house.now += settled.retry_in;
    house.tick();
  }
}

/// As on spot machines: what works for an hour and is then taken away is no endless repetition.
TEST(Scheduler, LongAttemptsMayBeLostMoreOften) {
  House house(tasks_of(1, 1000, 0));
  int attempts = 0;
  for (auto to = To::again; to == To::again && attempts < 1000; ++attempts) {
    house.join(attempts + 1, cpu(1000));
    house.now += std::chrono::minutes(attempts == 0 ? 1 : 60);
    house.end(house.take<StartAttempt>().at(0).token, Verdict::infrastructure_failure);
    to = house.take<TaskSettled>().at(0).to;
    house.scheduler.left({attempts + 1});
    house.now += std::chrono::minutes(2);
    house.tick();
  }
  EXPECT_EQ(attempts, 1 + 7 * 16);
}

}  // namespace
}  // namespace berth::schedule
