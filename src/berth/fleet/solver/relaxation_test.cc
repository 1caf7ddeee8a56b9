#include "berth/fleet/solver/relaxation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "berth/base/rng.h"

namespace berth::fleet {
namespace {

/// Adds an option that uses one row, or two.
void add(Knapsack& knapsack, double cost, Rng& rng, std::size_t rows, std::size_t most) {
  std::vector<Use> uses;
  for (std::size_t i = 0; i <= rng.below(2); ++i) {
    const Use use{static_cast<std::uint32_t>(rng.below(rows)),
                  static_cast<double>(1 + rng.below(most))};
    if (uses.empty() || uses[0].row != use.row) uses.push_back(use);
  }
  knapsack.add(cost, uses);
}

Knapsack random_knapsack(Rng& rng, std::size_t groups, std::size_t rows, std::size_t most = 20) {
  Knapsack knapsack;
  for (std::size_t g = 0; g < groups; ++g) {
    for (std::size_t o = 0; o <= rng.below(8); ++o)
      add(knapsack, std::round(1000 * rng.uniform()), rng, rows, most);
    knapsack.add(2000, {});
    knapsack.end_group();
  }
  for (std::size_t r = 0; r < rows; ++r)
    knapsack.add_row(static_cast<double>(rng.below(most * groups / 5 + 1)));
  return knapsack;
}

/// What the relaxation's own parts cost, and that they are within the limits.
double cost_of_fractions(const Knapsack& knapsack, const Relaxation& lp) {
  std::vector<double> used(knapsack.limits.size(), 0), whole(knapsack.groups(), 1);
  double cost = 0;
  const auto add = [&](std::uint32_t option, double part) {
    const Option& o = knapsack.options[option];
    cost += part * o.cost;
    for (const Use& use : knapsack.uses_of(o)) used[use.row] += part * use.amount;
    EXPECT_TRUE(lp.allowed(option));
  };
  for (const Relaxation::Fraction& part : lp.fractions()) {
    EXPECT_GT(part.part, 0);
    add(part.option, part.part);
    whole[part.group] -= part.part;
  }
  const Chosen chosen = lp.rounded();
  for (std::size_t g = 0; g < knapsack.groups(); ++g) {
    EXPECT_TRUE(std::abs(whole[g]) < 1e-6 || whole[g] == 1);
    if (whole[g] == 1) add(chosen[g], 1);
  }
  for (std::size_t r = 0; r < used.size(); ++r)
    EXPECT_LE(used[r], knapsack.limits[r] * (1 + 1e-9) + 1e-6);
  return cost;
}

TEST(Relaxation, BoundIsWhatItsPartsCost) {
  Rng rng(1);
  for (int round = 0; round < 300; ++round) {
    const std::size_t most = round % 3 == 0 ? 1'000'000 : 20;
    const Knapsack knapsack = random_knapsack(rng, 1 + rng.below(200), 1 + rng.below(40), most);
    Relaxation lp(knapsack);
    Budget budget{.iterations = 1'000'000'000};
    ASSERT_EQ(lp.solve(HUGE_VAL, budget), Relaxation::Outcome::optimal) << "round " << round;
    const double bound = lp.bound(budget);
    EXPECT_NEAR(cost_of_fractions(knapsack, lp), bound, 1e-6 * (1 + bound)) << "round " << round;
    EXPECT_LE(lp.fractions().size(), 2 * knapsack.limits.size());
    for (const double price : lp.prices()) EXPECT_GE(price, 0);
  }
}

TEST(Relaxation, ComesBackFromWhatWasForbidden) {
  Rng rng(2);
  for (int round = 0; round < 100; ++round) {
    const Knapsack knapsack = random_knapsack(rng, 20 + rng.below(50), 1 + rng.below(8));
    Relaxation lp(knapsack);
    Budget budget{.iterations = 1'000'000'000};
    ASSERT_EQ(lp.solve(HUGE_VAL, budget), Relaxation::Outcome::optimal);
    const double before = lp.bound(budget);
    const Relaxation::Basis basis = lp.basis();
    std::vector<std::uint32_t> forbidden;
    for (int i = 0; i < 10; ++i) {
      const auto option = static_cast<std::uint32_t>(rng.below(knapsack.options.size()));
      if (knapsack.uses_of(knapsack.options[option]).empty() || !lp.allowed(option)) continue;
      lp.forbid(option);
      forbidden.push_back(option);
      ASSERT_EQ(lp.solve(HUGE_VAL, budget), Relaxation::Outcome::optimal);
      const double bound = lp.bound(budget);
      EXPECT_GE(bound, before - 1e-6);
      EXPECT_NEAR(cost_of_fractions(knapsack, lp), bound, 1e-6 * (1 + bound)) << "round " << round;
    }
    for (const std::uint32_t option : forbidden) lp.allow(option);
    lp.restore(basis);
    ASSERT_EQ(lp.solve(HUGE_VAL, budget), Relaxation::Outcome::optimal);
    EXPECT_NEAR(lp.bound(budget), before, 1e-9 * (1 + before));
  }
}

TEST(Relaxation, BeginsAnewFromABasisThatIsNone) {
  Rng rng(3);
  const Knapsack knapsack = random_knapsack(rng, 40, 5);
  Relaxation lp(knapsack);
  Budget budget{.iterations = 1'000'000'000};
  ASSERT_EQ(lp.solve(HUGE_VAL, budget), Relaxation::Outcome::optimal);
  const double bound = lp.bound(budget);
  Relaxation::Basis basis = lp.basis();
  std::ranges::fill(basis.columns, basis.group_keys[0]);
  lp.restore(basis);
  ASSERT_EQ(lp.solve(HUGE_VAL, budget), Relaxation::Outcome::optimal);
  EXPECT_NEAR(lp.bound(budget), bound, 1e-9 * (1 + bound));
}

TEST(Relaxation, SaysThatNoneIsWithinTheLimits) {
  Knapsack knapsack;
  for (int g = 0; g < 3; ++g) {
    knapsack.add(1, std::array{Use{0, 2}});
    knapsack.add(1, std::array{Use{1, 3}});
    knapsack.end_group();
  }
  knapsack.add_row(2);
  knapsack.add_row(5);
  Relaxation lp(knapsack);
  Budget budget{.iterations = 1'000'000};
  EXPECT_EQ(lp.solve(HUGE_VAL, budget), Relaxation::Outcome::infeasible);
  knapsack.limits[1] = 6;
  Relaxation wider(knapsack);
  EXPECT_EQ(wider.solve(HUGE_VAL, budget), Relaxation::Outcome::optimal);
}

}  // namespace
}  // namespace berth::fleet
