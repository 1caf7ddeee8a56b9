// Attempts that failed because of their machine are tried again without taking a retry, but not for
// ever.
#include <gtest/gtest.h>

#include "berth/testing/schedule.h"

namespace berth::schedule {
namespace {

using testing::cpu;
using testing::tasks_of;
using testing::TestScheduler;
using To = TaskSettled::To;

TEST(Scheduler, ShortageTakesNoRetry) {
  TestScheduler test(tasks_of(1, 1000, 0));
  test.join(1, cpu(1000));
  for (int attempt = 0; attempt < 7; ++attempt) {
    test.end(test.take<StartAttempt>().at(0).token, Verdict::infrastructure_failure);
    const auto settled = test.take<TaskSettled>().at(0);
    EXPECT_EQ(settled.to, To::again);
    EXPECT_LE(settled.retry_in, std::chrono::seconds(90));
    test.now += settled.retry_in;
    test.tick();
  }
  test.end(test.take<StartAttempt>().at(0).token);
  EXPECT_EQ(test.take<TaskSettled>().at(0).to, To::done);
}

TEST(Scheduler, AStartThatFailsForEverFailsItsTask) {
  TestScheduler test(tasks_of(1, 1000, 5));
  test.join(1, cpu(1000));
  const Mono began = test.now;
  int attempts = 0;
  for (auto to = To::again; to == To::again && attempts < 100; ++attempts) {
    test.end(test.take<StartAttempt>().at(0).token, Verdict::infrastructure_failure);
    const auto settled = test.take<TaskSettled>().at(0);
    to = settled.to;
    test.now += settled.retry_in;
    test.tick();
  }
  EXPECT_EQ(attempts, 8);
  EXPECT_LE(test.now - began, std::chrono::seconds(100));
  EXPECT_GE(test.now - began, std::chrono::seconds(30));
}

TEST(Scheduler, InfrastructureFailuresAreCountedInARow) {
  TestScheduler test(tasks_of(1, 1000, 100));
  test.join(1, cpu(1000));
  for (int attempt = 0; attempt < 40; ++attempt) {
    const bool fails = attempt % 5 == 4;
    test.end(test.take<StartAttempt>().at(0).token,
             fails ? Verdict::failed : Verdict::infrastructure_failure);
    const auto settled = test.take<TaskSettled>().at(0);
    ASSERT_EQ(settled.to, To::again) << attempt;
    test.now += settled.retry_in;
    test.tick();
  }
}

/// On preemptible machines an attempt that ran for an hour before it was lost made progress.
TEST(Scheduler, LongAttemptsMayBeLostMoreOften) {
  TestScheduler test(tasks_of(1, 1000, 0));
  int attempts = 0;
  for (auto to = To::again; to == To::again && attempts < 1000; ++attempts) {
    test.join(attempts + 1, cpu(1000));
    test.now += std::chrono::minutes(attempts == 0 ? 1 : 60);
    test.end(test.take<StartAttempt>().at(0).token, Verdict::infrastructure_failure);
    to = test.take<TaskSettled>().at(0).to;
    test.scheduler.left({attempts + 1});
    test.now += std::chrono::minutes(2);
    test.tick();
  }
  EXPECT_EQ(attempts, 1 + 7 * 16);
}

}  // namespace
}  // namespace berth::schedule
