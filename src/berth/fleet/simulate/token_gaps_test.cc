#include "berth/fleet/simulate/token_gaps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "berth/base/rng.h"

namespace berth::fleet {
namespace {

TEST(TokenGaps, NothingIsNought) {
  const TokenGaps gaps;
  EXPECT_EQ(gaps.tokens(), 0);
  EXPECT_EQ(gaps.mean_ms(), 0);
  EXPECT_EQ(gaps.quantiles_ms(std::array{0.5}), std::vector{0.0});
}

TEST(TokenGaps, QuantilesAreThoseOfTheSingleTimes) {
  Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    TokenGaps gaps, other;
    std::vector<double> all;
    // From steps of nothing to steps over many powers of 2.
    const double wide = std::pow(10.0, -6.0 + 8 * rng.uniform());
    for (int run = 0; run < 40; ++run) {
      const double first = 1 + 20 * rng.uniform() * (run % 3);
      const double step = run % 4 == 0 ? 0 : wide * rng.uniform();
      const auto count = static_cast<std::int64_t>(1 + rng.below(60));
      const auto tokens = static_cast<std::int64_t>(1 + rng.below(9));
      (run % 2 == 0 ? gaps : other).add(first, step, count, tokens);
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t t = 0; t < tokens; ++t)
          all.push_back(first + step * static_cast<double>(i));
    }
    gaps.add(other);
    std::sort(all.begin(), all.end());
    ASSERT_EQ(gaps.tokens(), std::ssize(all));
    double sum = 0;
    for (const double ms : all) sum += ms;
    ASSERT_NEAR(gaps.mean_ms(), sum / static_cast<double>(all.size()), 1e-9 * sum);
    constexpr std::array kAll{0.0, 0.01, 0.5, 0.9, 0.99, 1.0};
    const auto found = gaps.quantiles_ms(kAll);
    for (std::size_t q = 0; q < kAll.size(); ++q) {
      const auto rank =
          static_cast<std::size_t>(std::ceil(kAll[q] * static_cast<double>(all.size())));
      const double wanted = all[std::max<std::size_t>(rank, 1) - 1];
      ASSERT_NEAR(found[q], wanted, 4e-9 * wanted) << round << " " << kAll[q];
    }
  }
}

}  // namespace
}  // namespace berth::fleet
