#include "berth/fleet/solver/knapsack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "berth/base/rng.h"
#include "berth/fleet/solver/relaxation.h"

namespace berth::fleet {
namespace {

constexpr std::uint32_t kFineRow = 2;  // of which are used eighths

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
      for (Use& use : uses) {
        amounts += use.amount;
        if (use.row == kFineRow) use.amount /= 8;
      }
      knapsack.add(cost, uses);
    }
    knapsack.add(whole ? 1 : 900, {});
    knapsack.end_group();
  }
  for (std::size_t r = 0; r < rows; ++r) {
    const double limit =
        std::floor(amounts / static_cast<double>(rows) / 3 * (0.2 + 0.8 * rng.uniform()));
    if (r == kFineRow)
      knapsack.add_row(limit / 8, RowKind::any);
    else
      knapsack.add_row(limit);
  }
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

/// Visits every choice within the first `rows` limits.
void each_choice(const Knapsack& knapsack, std::size_t rows, std::vector<double>& left,
                 Chosen& chosen, const std::function<void(const Chosen&)>& visit) {
  if (chosen.size() == knapsack.groups()) return visit(chosen);
  const std::size_t group = chosen.size();
  for (std::size_t o = knapsack.begin[group]; o < knapsack.begin[group + 1]; ++o) {
    const auto uses = knapsack.uses_of(knapsack.options[o]);
    for (const Use& use : uses) left[use.row] -= use.amount;
    chosen.push_back(static_cast<std::uint32_t>(o));
    bool fits = true;
    for (std::size_t r = 0; r < rows; ++r) fits = fits && left[r] >= 0;
    if (fits) each_choice(knapsack, rows, left, chosen, visit);
    chosen.pop_back();
    for (const Use& use : uses) left[use.row] += use.amount;
  }
}

TEST(Knapsack, CutsHoldOfEveryChoice) {
  Rng rng(4);
  int cuts = 0;
  double before = 0, after = 0;  // the bounds' distances from the optimum
  for (int round = 0; round < 400; ++round) {
    const Knapsack knapsack =
        random_knapsack(rng, 2 + rng.below(5), 1 + rng.below(4), round % 3 == 0);
    Budget budget{.iterations = 100'000'000};
    const Knapsack strong = strengthened(knapsack, budget);
    std::vector<double> left = strong.limits;
    Chosen chosen;
    double least = HUGE_VAL;
    each_choice(strong, knapsack.limits.size(), left, chosen, [&](const Chosen& choice) {
      least = std::min(least, cost_of(strong, choice));
      for (const double unused : left_of(strong, choice)) ASSERT_GE(unused, 0) << "round " << round;
    });
    const auto bound_of = [&](const Knapsack& of) {
      Relaxation lp(of);
      EXPECT_EQ(lp.solve(HUGE_VAL, budget), Relaxation::Outcome::optimal);
      return lp.bound(budget);
    };
    ASSERT_LE(bound_of(strong), least + 1e-4) << "round " << round;
    before += least - bound_of(knapsack);
    after += least - bound_of(strong);
    cuts += static_cast<int>(strong.limits.size() - knapsack.limits.size());
  }
  EXPECT_GT(cuts, 400);
  EXPECT_LT(after, before / 2);
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
