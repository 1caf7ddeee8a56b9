#include "berth/experiment/pareto.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "berth/base/rng.h"

namespace berth::experiment {
namespace {

std::vector<Merit> any_merits(Rng& rng) {
  std::vector<Merit> merits(1 + rng.below(40));
  const auto goals = 1 + rng.below(4);
  for (auto& merit : merits) {
    merit.violation = rng.below(3) == 0 ? static_cast<double>(rng.below(3)) : 0;
    for (std::uint64_t goal = 0; goal < goals; ++goal)
      merit.scores.push_back(static_cast<double>(rng.below(6)));
    if (rng.below(10) == 0) merit = {{}, HUGE_VAL};
  }
  return merits;
}

std::vector<const Merit*> pointers(const std::vector<Merit>& merits) {
  std::vector<const Merit*> all;
  for (const auto& merit : merits) all.push_back(&merit);
  return all;
}

TEST(Pareto, WhatIsFeasibleDominatesWhatIsNot) {
  EXPECT_TRUE(dominates({{1, 1}, 0}, {{9, 9}, 0.1}));
  EXPECT_TRUE(dominates({{1, 1}, 0.1}, {{9, 9}, 0.2}));
  EXPECT_TRUE(dominates({{1, 1}, 9}, {{}, HUGE_VAL})) << "failed ones are the worst";
  EXPECT_TRUE(dominates({{2, 1}, 0}, {{1, 1}, 0}));
  EXPECT_FALSE(dominates({{1, 1}, 0}, {{1, 1}, 0}));
  EXPECT_FALSE(dominates({{2, 0}, 0}, {{1, 1}, 0}));
}

/// By the definition: each front is what nothing left dominates.
TEST(Pareto, FrontsAreThoseOfBruteForce) {
  Rng rng(1);
  for (int round = 0; round < 200; ++round) {
    const auto merits = any_merits(rng);
    const auto enough = 1 + rng.below(merits.size());
    std::vector<std::size_t> left(merits.size());
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = i;
    std::size_t count = 0;
    for (auto front : fronts(pointers(merits), enough)) {
      EXPECT_LT(count, enough) << "one more than was needed";
      std::vector<std::size_t> expected;
      for (const auto each : left)
        if (std::ranges::none_of(
                left, [&](auto other) { return dominates(merits[other], merits[each]); }))
          expected.push_back(each);
      std::ranges::sort(front);
      ASSERT_EQ(front, expected);
      std::erase_if(left, [&](auto each) { return std::ranges::count(front, each) > 0; });
      count += front.size();
    }
    EXPECT_GE(count, enough);
  }
}

TEST(Pareto, CrowdingIsTheDistanceOfNeighbours) {
  const std::vector<Merit> front{{{0, 10}}, {{1, 6}}, {{2, 5}}, {{4, 0}}};
  const auto distances = crowding(pointers(front));
  EXPECT_EQ(distances[0], HUGE_VAL);
  EXPECT_EQ(distances[3], HUGE_VAL);
  EXPECT_DOUBLE_EQ(distances[1], 2.0 / 4 + 5.0 / 10);
  EXPECT_DOUBLE_EQ(distances[2], 3.0 / 4 + 6.0 / 10);
  EXPECT_EQ(crowding(pointers({{{1, 1}}})), std::vector<double>{HUGE_VAL});
  EXPECT_TRUE(crowding({}).empty());
}

}  // namespace
}  // namespace berth::experiment
