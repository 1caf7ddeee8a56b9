#include "berth/schedule/expected_time.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "berth/base/rng.h"

namespace berth::schedule {
namespace {

using std::chrono::seconds;

std::optional<ExpectedTime> expected(std::vector<int> ended_s, int limit_s, int elapsed_s) {
  KnownTimes known{{}, seconds(limit_s)};
  for (const int each : ended_s) known.ended.push_back(seconds(each));
  return expected_time(known, seconds(elapsed_s));
}

TEST(ExpectedTime, IsTheMedianOfThoseThatTookLonger) {
  EXPECT_EQ(expected({10, 20, 30}, 0, 0), (ExpectedTime{seconds(20), 3}));
  EXPECT_EQ(expected({10, 20, 30}, 0, 15), (ExpectedTime{seconds(5), 2}));
  EXPECT_EQ(expected({10, 20, 30}, 0, 20), (ExpectedTime{seconds(10), 1}));
}

TEST(ExpectedTime, IsUnknownWhereATaskHasOutlastedAllOthersAndHasNoLimit) {
  EXPECT_EQ(expected({}, 0, 0), std::nullopt);
  EXPECT_EQ(expected({10, 20}, 0, 20), std::nullopt);
  EXPECT_EQ(expected({}, 60, 60), std::nullopt) << "it should have been ended";
}

TEST(ExpectedTime, TheLimitIsTheMost) {
  EXPECT_EQ(expected({}, 60, 10), (ExpectedTime{seconds(50), 0}));
  EXPECT_EQ(expected({10}, 60, 10), (ExpectedTime{seconds(50), 0}));
  EXPECT_EQ(expected({90}, 60, 10), (ExpectedTime{seconds(50), 1})) << "of an earlier limit";
  EXPECT_EQ(expected({90}, 60, 70), (ExpectedTime{seconds(0), 1}));
}

TEST(ExpectedTime, AgreesWithSortingThoseThatAreLeft) {
  Rng rng(7);
  for (int round = 0; round < 2000; ++round) {
    KnownTimes known;
    for (auto i = rng.below(9); i > 0; --i) known.ended.push_back(seconds(rng.below(20)));
    std::ranges::sort(known.ended);
    const Duration elapsed = seconds(rng.below(20));
    std::vector<Duration> left;
    for (const auto each : known.ended)
      if (each > elapsed) left.push_back(each - elapsed);
    const auto found = expected_time(known, elapsed);
    ASSERT_EQ(found.has_value(), !left.empty());
    if (left.empty()) continue;
    EXPECT_EQ(found->by, left.size());
    EXPECT_EQ(found->left, left[(left.size() - 1) / 2]);
  }
}

}  // namespace
}  // namespace berth::schedule
