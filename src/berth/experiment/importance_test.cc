#include "berth/experiment/importance.h"

#include <gtest/gtest.h>

#include <functional>

#include "berth/base/rng.h"

namespace berth::experiment {
namespace {

using Score = std::function<double(double a, double b, double c)>;

/// Trials with three parameters, even in 0 to 1.
std::vector<ScoredTrial> drawn(std::size_t count, std::uint64_t seed, const Score& score) {
  Rng rng(seed);
  std::vector<ScoredTrial> trials;
  for (std::size_t i = 0; i < count; ++i) {
    const double a = rng.uniform(), b = rng.uniform(), c = rng.uniform();
    trials.push_back({{{"a", fmt::format("{:.6f}", a)},
                       {"b", fmt::format("{:.6f}", b)},
                       {"c", fmt::format("{:.6f}", c)}},
                      score(a, b, c)});
  }
  return trials;
}

const Importance& of(const Importances& all, std::string_view name) {
  return *std::ranges::find(all.parameters, name, &Importance::parameter);
}

/// 3a + b: of the variance a has 9 parts and b 1.
TEST(Importances, AreThePartsOfTheVariance) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const auto trials = drawn(400, seed, [](double a, double b, double) { return 3 * a + b; });
    const auto found = importances(trials, seed);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->parameters[0].parameter, "a");
    EXPECT_NEAR(of(*found, "a").share, 0.9, 0.05) << seed;
    EXPECT_NEAR(of(*found, "b").share, 0.1, 0.05) << seed;
    EXPECT_LT(of(*found, "c").share, 0.01) << seed;
    EXPECT_LT(found->together, 0.05) << seed;
    EXPECT_GT(found->predicted, 0.9) << seed;
  }
}

/// Whether a and b are on the same side: neither says anything alone.
TEST(Importances, WhatOnlyACombinationExplainsIsNoParametersOwn) {
  const auto trials =
      drawn(800, 3, [](double a, double b, double) { return (a < 0.5) == (b < 0.5) ? 1 : 0; });
  const auto found = importances(trials, 1);
  ASSERT_TRUE(found);
  EXPECT_GT(found->together, 0.6);
  for (const auto& each : found->parameters) EXPECT_LT(each.share, 0.2) << each.parameter;
}

TEST(Importances, OfNoiseAreNotPredicted) {
  Rng rng(7);
  const auto trials = drawn(200, 4, [&](double, double, double) { return rng.uniform(); });
  const auto found = importances(trials, 1);
  ASSERT_TRUE(found);
  EXPECT_LT(found->predicted, 0.1);
}

TEST(Importances, OfCategoriesAndOfWhatOnlySomeTrialsHave) {
  Rng rng(5);
  std::vector<ScoredTrial> trials;
  for (int i = 0; i < 400; ++i) {
    const bool deep = rng.below(2) == 1;
    const double rate = rng.uniform();
    ScoredTrial trial{{{"net", deep ? "deep" : "flat"}}, deep ? 5.0 : 0.0};
    if (deep) trial.params.emplace_back("rate", fmt::format("{:.6f}", rate));
    if (deep) trial.score += rate;
    trials.push_back(std::move(trial));
  }
  const auto found = importances(trials, 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->parameters[0].parameter, "net");
  EXPECT_GT(of(*found, "net").share, 0.9);
  EXPECT_LT(of(*found, "rate").share, 0.05) << "that it is there is net's doing";
  EXPECT_GT(of(*found, "rate").share, 0);
  EXPECT_EQ(of(*found, "rate").trials,
            std::ranges::count(trials, 2U, [](const auto& trial) { return trial.params.size(); }));
}

TEST(Importances, OneThatDivergedHidesNothing) {
  auto trials = drawn(200, 6, [](double a, double, double) { return a; });
  trials[17].score = 1e30;
  const auto found = importances(trials, 1);
  ASSERT_TRUE(found);
  EXPECT_GT(of(*found, "a").share, 0.8);
}

TEST(Importances, AreTheSameEveryTime) {
  const auto trials = drawn(60, 8, [](double a, double b, double c) { return a * b - c; });
  const auto once = importances(trials, 9), again = importances(trials, 9);
  ASSERT_TRUE(once && again);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(once->parameters[i].parameter, again->parameters[i].parameter);
    EXPECT_EQ(once->parameters[i].share, again->parameters[i].share);
  }
}

TEST(Importances, OfTooLittleAreRefused) {
  const auto few = drawn(9, 1, [](double a, double, double) { return a; });
  EXPECT_EQ(importances(few, 1).error().message, "expected at least 10 trials with a score, got 9");
  const auto same = drawn(20, 1, [](double, double, double) { return 2; });
  EXPECT_EQ(importances(same, 1).error().message,
            "all 20 trials have the same score: there is nothing to explain");
  const std::vector<ScoredTrial> bare(20, ScoredTrial{{}, 1});
  EXPECT_EQ(importances(bare, 1).error().kind, ErrorKind::busy);
}

}  // namespace
}  // namespace berth::experiment
