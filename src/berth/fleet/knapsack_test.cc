#include "berth/fleet/knapsack.h"

#include <gtest/gtest.h>

#include <cmath>

#include "berth/base/rng.h"

namespace berth::fleet {
namespace {

/// Random groups of up to six options over up to four rows, every group with one that uses none.
Knapsack random_knapsack(Rng& rng, std::size_t groups, std::size_t rows, bool whole) {
  Knapsack knapsack;
  knapsack.whole_costs = whole;
  double amounts = 0;
  for (std::size_t g = 0; g < groups; ++g) {
    for (std::size_t o = 0; o <= rng.below(5); ++o) {
      const double cost = whole ? 0 : std::round(1000 * rng.uniform()) - 300;
      std::vector<Use> uses;
      for (std::uint32_t row = 0; row < rows; ++row)
        if (rng.below(rows) < 2 && uses.size() < 2)
          uses.push_back({row, static_cast<double>(1 + rng.below(20))});
      for (const Use& use : uses) amounts += use.amount;
      knapsack.add(cost, uses);
    }
    knapsack.add(whole ? 1 : 900, {});
    knapsack.end_group();
  }
  for (std::size_t r = 0; r < rows; ++r)
    knapsack.add_row(
        std::floor(amounts / static_cast<double>(rows) / 3 * (0.2 + 0.8 * rng.uniform())));
  return knapsack;
}

Chosen last_options(const Knapsack& knapsack) {
  Chosen chosen;
  for (std::size_t g = 0; g < knapsack.groups(); ++g)
    chosen.push_back(static_cast<std::uint32_t>(knapsack.begin[g + 1] - 1));
  return chosen;
}

double least_cost(const Knapsack& knapsack, std::size_t group, std::vector<double>& left) {
  if (group == knapsack.groups()) return 0;
  double least = HUGE_VAL;
  for (const Option& o : knapsack.of(group)) {
    bool fits = true;
    for (const Use& use : knapsack.uses_of(o)) fits = (left[use.row] -= use.amount) >= 0 && fits;
    if (fits) least = std::min(least, o.cost + least_cost(knapsack, group + 1, left));
    for (const Use& use : knapsack.uses_of(o)) left[use.row] += use.amount;
  }
  return least;
}

TEST(Knapsack, IsTheLeastOfAll) {
  Rng rng(1);
  for (int round = 0; round < 600; ++round) {
    const Knapsack knapsack =
        random_knapsack(rng, 1 + rng.below(8), 1 + rng.below(4), round % 3 == 0);
    std::vector<double> left = knapsack.limits;
    const double least = least_cost(knapsack, 0, left);
    Budget budget{.iterations = 10'000'000};
    const Answer answer = solve(knapsack, last_options(knapsack), budget);
    ASSERT_NEAR(answer.cost, least, 1e-6) << "round " << round;
    ASSERT_NEAR(answer.bound, least, 1e-6) << "round " << round;
    ASSERT_NEAR(cost_of(knapsack, answer.chosen), answer.cost, 1e-9);
    for (const double unused : left_of(knapsack, answer.chosen)) ASSERT_GE(unused, -1e-9);
  }
}

/// First the fewest groups without a row, then the least cost with so few, which is known of a row.
TEST(Knapsack, ExactRowHoldsWhatIsProven) {
  Rng rng(3);
  double raised = 0;  // how much of the bound of the relaxation comes from what is known
  for (int round = 0; round < 300; ++round) {
    Knapsack knapsack = random_knapsack(rng, 2 + rng.below(6), 1 + rng.below(3), true);
    Budget budget{.iterations = 100'000'000};
    const Answer fewest = solve(knapsack, last_options(knapsack), budget);
    ASSERT_NEAR(fewest.cost, fewest.bound, 1e-6);
    Knapsack known;
    known.limits = knapsack.limits;
    known.kinds = knapsack.kinds;
    const Use unserved{known.add_row(std::round(fewest.cost), RowKind::exact), 1};
    for (std::size_t g = 0; g < knapsack.groups(); ++g) {
      for (const Option& o : knapsack.of(g)) {
        const double cost = std::round(1000 * rng.uniform()) - 300;
        const bool is_last = &o == &knapsack.of(g).back();
        known.add(cost, is_last ? std::span(&unserved, 1) : knapsack.uses_of(o));
      }
      known.end_group();
    }
    knapsack = known;
    std::vector<double> left = knapsack.limits;
    const double least = least_cost(knapsack, 0, left);
    const Answer answer = solve(knapsack, fewest.chosen, budget);
    ASSERT_NEAR(answer.cost, least, 1e-6) << "round " << round;
    ASSERT_NEAR(answer.bound, least, 1e-6) << "round " << round;
    ASSERT_LE(answer.relaxed, least + 1e-6) << "round " << round;
    knapsack.kinds.back() = RowKind::limit;
    const Answer unknown = solve(knapsack, fewest.chosen, budget);
    ASSERT_NEAR(unknown.cost, least, 1e-6) << "round " << round;
    ASSERT_LE(unknown.relaxed, answer.relaxed + 1e-6) << "round " << round;
    raised += answer.relaxed - unknown.relaxed;
  }
  EXPECT_GT(raised, 100);
}

TEST(Knapsack, BoundHoldsWhateverTheBudget) {
  Rng rng(2);
  for (int round = 0; round < 300; ++round) {
    const Knapsack knapsack = random_knapsack(rng, 8, 3, round % 3 == 0);
    std::vector<double> left = knapsack.limits;
    const double least = least_cost(knapsack, 0, left);
    Budget budget{.iterations = static_cast<std::int64_t>(rng.below(3000))};
    const Answer answer = solve(knapsack, last_options(knapsack), budget);
    ASSERT_LE(answer.bound, least + 1e-6) << "round " << round;
    ASSERT_GE(answer.cost, least - 1e-6) << "round " << round;
    for (const double unused : left_of(knapsack, answer.chosen)) ASSERT_GE(unused, -1e-9);
  }
}

}  // namespace
}  // namespace berth::fleet
