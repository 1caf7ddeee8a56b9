// Tasks that ask for something else at their next attempt.
#include <gtest/gtest.h>

#include "berth/base/rng.h"
#include "berth/testing/schedule.h"

namespace berth::schedule {
namespace {

using namespace testing;

TEST(SchedulerResize, TheNextAttemptWaitsForRoomOfItsNewSize) {
  TestScheduler test(tasks_of(1, 1000, 2));
  test.join(1, cpu(1000));
  const auto first = test.take<StartAttempt>().at(0);
  test.end(first.token, Verdict::failed);
  test.scheduler.resize({1}, cpu(2000));
  test.scheduler.check();
  test.now += std::chrono::minutes(1);
  test.tick();
  EXPECT_TRUE(test.started().empty()) << "worker 1 is too small now";
  ASSERT_EQ(test.scheduler.needs().size(), 1U);
  EXPECT_EQ(test.scheduler.needs()[0].min, cpu(2000));
  test.join(2, cpu(2000));
  EXPECT_EQ(test.started(), std::vector<std::int64_t>{1});
  EXPECT_EQ(test.scheduler.free({2}), cpu(0));
  EXPECT_EQ(test.scheduler.free({1}), cpu(1000));
}

/// Any order of failures, resizes and ticks leaves the books in agreement, and every task ends.
TEST(SchedulerResize, TheBooksAgreeInAnyOrder) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    TestScheduler test(tasks_of(20, 500, 6), {.seed = seed, .backfill_limit = 2});
    test.join(1, cpu(4000));
    test.join(2, cpu(2000));
    std::vector<StartAttempt> running;
    for (int step = 0; step < 2000 && !test.scheduler.over(); ++step) {
      for (const auto& start : test.take<StartAttempt>()) running.push_back(start);
      if (!running.empty() && rng.next() % 3 != 0) {
        const auto at = static_cast<std::ptrdiff_t>(rng.next() % running.size());
        const StartAttempt ended = running[static_cast<std::size_t>(at)];
        running.erase(running.begin() + at);
        const bool fails = rng.next() % 2 == 0;
        test.end(ended.token, fails ? Verdict::failed : Verdict::done);
        if (!fails || test.scheduler.over()) continue;
        bool again = false;
        for (const auto& effect : test.effects)
          if (const auto* settled = std::get_if<TaskSettled>(&effect))
            again =
                again || (settled->token == ended.token && settled->to == TaskSettled::To::again);
        if (again)
          test.scheduler.resize(ended.task,
                                cpu(500 * (1 + static_cast<std::int64_t>(rng.next() % 8))));
        test.scheduler.check();
      } else {
        test.now += std::chrono::seconds(30);
        test.tick();
      }
    }
    EXPECT_TRUE(test.scheduler.over()) << "seed " << seed;
    EXPECT_EQ(test.scheduler.free({1}), cpu(4000));
    EXPECT_EQ(test.scheduler.free({2}), cpu(2000));
  }
}

}  // namespace
}  // namespace berth::schedule
