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
      Option option;
      option.cost = whole ? 0 : std::round(1000 * rng.uniform()) - 300;
      option.row = static_cast<std::int32_t>(rng.below(rows));
      option.amount = static_cast<double>(1 + rng.below(20));
      amounts += option.amount;
      knapsack.options.push_back(option);
    }
    knapsack.options.push_back({.cost = whole ? 1.0 : 900.0});
    knapsack.end_group();
  }
  for (std::size_t r = 0; r < rows; ++r)
    knapsack.limits.push_back(
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
    double* row = o.row < 0 ? nullptr : &left[static_cast<std::size_t>(o.row)];
    if (row != nullptr && o.amount > *row) continue;
    if (row != nullptr) *row -= o.amount;
    least = std::min(least, o.cost + least_cost(knapsack, group + 1, left));
    if (row != nullptr) *row += o.amount;
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
