#include "berth/base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace berth {
namespace {

// Made by a second implementation, in Python's big integers, of the published algorithms; the
// first number of seed 0 is also what other libraries document.
TEST(Rng, GivesTheNumbersOfXoshiro256StarStarSeededBySplitmix64) {
  struct Case {
    std::uint64_t seed;
    std::array<std::uint64_t, 4> first;
    std::uint64_t thousandth;
  };
  constexpr Case kCases[] = {
      {0,
       {0x99ec5f36cb75f2b4, 0xbf6e1f784956452a, 0x1a5f849d4933e6e0, 0x6aa594f1262d2d2c},
       0x7aac8c483a2edd2f},
      {7,
       {0xb358faf74ef9765a, 0x475c3d964f482cd2, 0xd6f1d349952c7996, 0xfb2938731e807240},
       0xd8df721ab4271195},
      {UINT64_MAX,
       {0x8f5520d52a7ead08, 0xc476a018caa1802d, 0x81de31c0d260469e, 0xbf658d7e065f3c2f},
       0xc3c93ea5cde434cc}};
  for (const auto& [seed, first, thousandth] : kCases) {
    Rng rng(seed);
    for (const std::uint64_t number : first) EXPECT_EQ(rng.next(), number) << seed;
    for (int i = 4; i < 999; ++i) rng.next();
    EXPECT_EQ(rng.next(), thousandth) << seed;
  }
}

TEST(Rng, MixIsOneStepOfSplitmix64) {
  EXPECT_EQ(mix(0), 0xe220a8397b1dcdafU);
  EXPECT_EQ(mix(0x9e3779b97f4a7c15U), 0x6e789e6aa1b965f4U);
}

TEST(Rng, BelowIsWithoutBias) {
  // Under 3 · 2^62 a plain remainder would give the lowest third twice as often as the others.
  constexpr std::uint64_t kThird = 1ULL << 62;
  struct Case {
    std::uint64_t bound, cell;  // numbers below bound, counted in cells of this width
  };
  for (const auto& [bound, cell] : {Case{1, 1}, Case{2, 1}, Case{7, 1}, Case{100, 1},
                                    Case{3 * kThird, kThird}, Case{1000, 8}}) {
    constexpr int kDraws = 100'000;
    const auto cells = static_cast<std::size_t>(bound / cell);
    std::vector<int> counts(cells);
    Rng rng(bound);
    for (int i = 0; i < kDraws; ++i) {
      const std::uint64_t drawn = rng.below(bound);
      ASSERT_LT(drawn, bound);
      ++counts[drawn / cell];
    }
    const double expected = static_cast<double>(kDraws) / static_cast<double>(cells);
    double chi_square = 0;
    for (const int count : counts) chi_square += std::pow(count - expected, 2) / expected;
    const auto freedom = static_cast<double>(cells - 1);
    EXPECT_LE(chi_square, freedom + 4 * std::sqrt(2 * freedom) + 12) << bound;
  }
}

TEST(Rng, UniformFillsZeroToOne) {
  Rng rng(1);
  double least = 1, most = 0, sum = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double drawn = rng.uniform();
    ASSERT_TRUE(drawn >= 0 && drawn < 1) << drawn;
    least = std::min(least, drawn);
    most = std::max(most, drawn);
    sum += drawn;
  }
  EXPECT_LT(least, 0.001);
  EXPECT_GT(most, 0.999);
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
}

}  // namespace
}  // namespace berth
