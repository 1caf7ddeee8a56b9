#include "berth/fleet/fit/least_squares.h"

#include <gtest/gtest.h>

#include <cmath>

#include "berth/base/rng.h"

namespace berth::fleet {
namespace {

struct Rows {
  std::vector<Terms> x;
  std::vector<double> y;
  NormalEquations normal() const {
    NormalEquations sum;
    for (std::size_t i = 0; i < x.size(); ++i) sum.add(x[i], y[i], 1);
    return sum;
  }
  double residual(const Terms& at) const {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      double error = -y[i];
      for (std::size_t k = 0; k < kTerms; ++k) error += x[i].at(k) * at.at(k);
      sum += error * error;
    }
    return sum;
  }
};

Rows random_rows(Rng& rng, double noise) {
  Rows rows;
  Terms truth{};
  for (auto& value : truth) value = rng.uniform() - 0.4;
  for (int i = 0; i < 30; ++i) {
    Terms x{};
    double y = noise * (rng.uniform() - 0.5);
    for (std::size_t k = 0; k < kTerms; ++k) {
      x.at(k) = rng.uniform() * std::pow(10.0, static_cast<double>(k) - 2);
      y += x.at(k) * truth.at(k);
    }
    rows.x.push_back(x);
    rows.y.push_back(y);
  }
  return rows;
}

constexpr TermMask kAll{true, true, true, true, true};

TEST(LeastSquares, NoOtherPointNearbyIsBetter) {
  Rng rng(3);
  int at_bound = 0;
  for (int round = 0; round < 200; ++round) {
    const Rows rows = random_rows(rng, 0.3);
    const auto found = solve_nonnegative(rows.normal(), kAll);
    const double least = rows.residual(found.x);
    EXPECT_NEAR(found.residual, least, 1e-8 * (1 + least));
    for (std::size_t k = 0; k < kTerms; ++k) {
      EXPECT_GE(found.x.at(k), 0);
      at_bound += found.x.at(k) == 0 ? 1 : 0;
      for (const double step : {1e-3, 1e-2, 0.1, 1.0})
        for (const double sign : {-1.0, 1.0}) {
          Terms other = found.x;
          other.at(k) = std::max(0.0, other.at(k) + sign * step);
          EXPECT_GE(rows.residual(other), least * (1 - 1e-9)) << round;
        }
    }
  }
  EXPECT_GT(at_bound, 100);
}

TEST(LeastSquares, GivesBackWhatMadeTheRows) {
  Rng rng(5);
  Rows rows = random_rows(rng, 0);
  const Terms truth{3, 0.5, 0, 0.02, 7};
  for (std::size_t i = 0; i < rows.x.size(); ++i) {
    rows.y[i] = 0;
    for (std::size_t k = 0; k < kTerms; ++k) rows.y[i] += rows.x[i].at(k) * truth.at(k);
  }
  const auto found = solve_nonnegative(rows.normal(), kAll);
  for (std::size_t k = 0; k < kTerms; ++k) EXPECT_NEAR(found.x.at(k), truth.at(k), 1e-6);
  TermMask without = kAll;
  without[1] = false;
  EXPECT_EQ(solve_nonnegative(rows.normal(), without).x.at(1), 0);
}

TEST(LeastSquares, ColumnsThatAreTheSameHaveNoCondition) {
  NormalEquations apart, alike;
  for (int i = 1; i <= 20; ++i) {
    const double a = i, b = i % 7;
    apart.add({i % 2 == 0 ? 1.0 : 0.0, i % 2 == 1 ? 1.0 : 0.0, 0, 0, 0}, 1, 1);
    alike.add({1, a, b, 1000 * a, 0}, 1, 1);
  }
  EXPECT_NEAR(condition_of(apart, kAll).number, 1, 1e-9);
  const auto condition = condition_of(alike, kAll);
  EXPECT_GT(condition.number, 1e6);
  EXPECT_NEAR(std::abs(condition.weakest[Term::beta]), std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(std::abs(condition.weakest[Term::gamma]), std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(condition.weakest[Term::alpha], 0, 1e-6);
  // Either of the two does; both are not more than one.
  const auto found = solve_nonnegative(alike, kAll);
  EXPECT_TRUE(found.x[Term::beta] == 0 || found.x[Term::gamma] == 0);
}

TEST(LeastSquares, VarianceIsThatOfRepeatedMeasurements) {
  Rng rng(8);
  const Terms truth{2, 0.3, 0, 0, 0};
  const TermMask two{true, true, false, false, false};
  double sum = 0, square = 0, variance = 0;
  constexpr int kRepeats = 2000;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    NormalEquations normal;
    for (int i = 0; i < 10; ++i) {
      double noise = -6;
      for (int k = 0; k < 12; ++k) noise += rng.uniform();
      normal.add({1, static_cast<double>(i), 0, 0, 0},
                 truth[Term::alpha] + i * truth[Term::beta] + 0.1 * noise, 100);
    }
    const auto found = solve_nonnegative(normal, two);
    sum += found.x[Term::beta] / kRepeats;
    square += found.x[Term::beta] * found.x[Term::beta] / kRepeats;
    variance = found.variance[Term::beta];
  }
  EXPECT_NEAR((square - sum * sum) / variance, 1, 0.15);
}

}  // namespace
}  // namespace berth::fleet
