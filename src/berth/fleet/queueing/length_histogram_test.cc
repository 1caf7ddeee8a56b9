#include "berth/fleet/queueing/length_histogram.h"

#include <gtest/gtest.h>

#include <cmath>

#include "berth/base/rng.h"

namespace berth::fleet {
namespace {

using Bins = std::vector<LengthHistogram::Bin>;

std::string histogram_refusal(Bins bins) {
  const auto made = LengthHistogram::of(std::move(bins));
  return made ? "none" : made.error().message;
}

TEST(LengthHistogram, RefusesWhatIsNone) {
  EXPECT_EQ(histogram_refusal({{1, 0}, {10'000'000, 1e12}}), "none");
  EXPECT_EQ(histogram_refusal({}), "no bin has a weight");
  EXPECT_EQ(histogram_refusal({{8, 0}, {9, 0}}), "no bin has a weight");
  EXPECT_EQ(histogram_refusal({{8, 1}, {0, 1}}),
            "[1].tokens: expected more than 0 and at most 10000000, got 0");
  EXPECT_EQ(histogram_refusal({{10'000'001, 1}}),
            "[0].tokens: expected more than 0 and at most 10000000, got 10000001");
  EXPECT_EQ(histogram_refusal({{NAN, 1}}),
            "[0].tokens: expected more than 0 and at most 10000000, got nan");
  EXPECT_EQ(histogram_refusal({{8, 1}, {9, -1}}),
            "[1].weight: expected 0 to 1000000000000, got -1");
  EXPECT_EQ(histogram_refusal({{8, INFINITY}}), "[0].weight: expected 0 to 1000000000000, got inf");
  EXPECT_EQ(histogram_refusal({{8, NAN}}), "[0].weight: expected 0 to 1000000000000, got nan");
  EXPECT_EQ(histogram_refusal({{8, 1}, {9, 1}, {8, 0}}), "8 tokens are given twice");
  EXPECT_EQ(histogram_refusal(Bins(1001, {1, 1})), "expected at most 1000 bins, got 1001");
}

TEST(LengthHistogram, HasTheMomentsOfItsBins) {
  Rng rng(3);
  for (int i = 0; i < 200; ++i) {
    Bins bins;
    for (std::size_t b = 0; b <= rng.below(100); ++b)
      bins.push_back({static_cast<double>(1 + 1000 * b + rng.below(1000)), rng.uniform()});
    double weight = 0, first = 0, second = 0, third = 0;
    for (const auto& [tokens, of] : bins) {
      weight += of;
      first += of * tokens, second += of * tokens * tokens, third += of * std::pow(tokens, 3);
    }
    const double mean = first / weight;
    const auto histogram = *LengthHistogram::of(bins);
    EXPECT_NEAR(histogram.mean() / mean, 1, 1e-12);
    EXPECT_NEAR(std::pow(histogram.cv(), 2), second / weight / mean / mean - 1, 1e-9);
    EXPECT_NEAR(histogram.third() / (third / weight / std::pow(mean, 3)), 1, 1e-12);
    double probability = 0, stretched = 0;
    histogram.each(3 * mean, [&](double tokens, double part) {
      probability += part, stretched += part * tokens;
    });
    EXPECT_NEAR(probability, 1, 1e-12);
    EXPECT_NEAR(stretched / mean, 3, 1e-12);
  }
}

TEST(LengthHistogram, IsComparedByItsBins) {
  const auto a = *LengthHistogram::of({{100, 1}, {300, 2}});
  const auto same = *LengthHistogram::of({{300, 2}, {200, 0}, {100, 1}});
  const auto heavier = *LengthHistogram::of({{100, 1}, {300, 3}});
  EXPECT_EQ(a, same);
  EXPECT_TRUE(a < heavier && heavier > a && a != heavier);
  EXPECT_TRUE(LengthHistogram() < a && LengthHistogram() == LengthHistogram());
  EXPECT_FALSE(LengthHistogram());
  EXPECT_TRUE(LengthHistogram().bins().empty());
}

TEST(LengthHistogram, AnotherMeanIsTheSameShape) {
  const auto histogram = *LengthHistogram::of({{100, 1}, {300, 1}});
  EXPECT_EQ(histogram.stretched(200), (Bins{{100, 1}, {300, 1}}));
  EXPECT_EQ(histogram.stretched(50), (Bins{{25, 1}, {75, 1}}));
  EXPECT_EQ(LengthHistogram::of(histogram.stretched(400))->cv(), histogram.cv());
}

TEST(LengthHistogram, FiguresMayBeRounded) {
  const auto histogram = *LengthHistogram::of({{2, 3}, {3, 1}});  // 2.25, cv 0.1925
  EXPECT_TRUE(histogram.has_mean(2) && histogram.has_mean(2.7) && !histogram.has_mean(2.8));
  EXPECT_TRUE(histogram.has_cv(0.19) && !histogram.has_cv(0.2) && !histogram.has_cv(0.18));
  const auto thousands = *LengthHistogram::of({{1000, 1}, {3000, 1}});
  EXPECT_TRUE(thousands.has_mean(2010) && !thousands.has_mean(2011) && !thousands.has_mean(NAN));
}

}  // namespace
}  // namespace berth::fleet
