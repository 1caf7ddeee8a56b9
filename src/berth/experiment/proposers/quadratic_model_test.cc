#include "berth/experiment/proposers/quadratic_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "berth/base/rng.h"
#include "berth/experiment/proposers/sampler.h"

namespace berth::experiment {
namespace {

double turned_valley(const Eigen::VectorXd& x) {
  return std::pow(x[0] + x[1] - 1, 2) + 8 * std::pow(x[0] - x[1], 2);
}

/// Points by the lot, the best first.
Eigen::MatrixXd ranked_points(Eigen::Index count, Rng& rng) {
  std::vector<Eigen::VectorXd> all;
  for (Eigen::Index i = 0; i < count; ++i) all.push_back(Eigen::Vector2d(normal(rng), normal(rng)));
  std::ranges::sort(all, {}, turned_valley);
  Eigen::MatrixXd points(2, count);
  for (Eigen::Index i = 0; i < count; ++i) points.col(i) = all[static_cast<std::size_t>(i)];
  return points;
}

TEST(QuadraticModel, TellsTheBetterOfTwoPoints) {
  Rng rng(1);
  const auto model = QuadraticModel::fit(ranked_points(40, rng), std::vector<bool>(40));
  ASSERT_TRUE(model);
  int right = 0;
  for (int i = 0; i < 200; ++i) {
    const auto two = ranked_points(2, rng);
    right += model->at(two.col(0)) < model->at(two.col(1)) ? 1 : 0;
  }
  EXPECT_GT(right, 155) << "of 200";
}

TEST(QuadraticModel, TakesFewerTermsWhereThereAreFewPoints) {
  Rng rng(1);
  for (const Eigen::Index count : {4, 5, 6, 7})
    EXPECT_TRUE(QuadraticModel::fit(ranked_points(count, rng),
                                    std::vector<bool>(static_cast<std::size_t>(count))));
  EXPECT_FALSE(QuadraticModel::fit(ranked_points(3, rng), std::vector<bool>(3)));
}

TEST(QuadraticModel, OfEqualPointsNoneIsBetter) {
  Rng rng(1);
  const auto model = QuadraticModel::fit(ranked_points(12, rng), std::vector<bool>(12, true));
  ASSERT_TRUE(model);
  EXPECT_NEAR(model->at(Eigen::Vector2d(1, 1)), model->at(Eigen::Vector2d(-1, 1)), 1e-9);
}

TEST(QuadraticModel, KnowsTheShapeOfAValleyAndTakesNothingElseForOne) {
  Rng rng(1);
  const Eigen::MatrixXd points = ranked_points(40, rng);
  const auto shape_of = [&](double (*function)(const Eigen::VectorXd&), Eigen::Index count) {
    Eigen::VectorXd values(count);
    for (Eigen::Index i = 0; i < count; ++i) values[i] = function(points.col(i));
    return QuadraticModel::valley(points.leftCols(count), values);
  };
  const auto valley = shape_of(turned_valley, 40);
  ASSERT_TRUE(valley);
  // The second derivatives are 18, -14, -14, 18.
  Eigen::Matrix2d curvature;
  curvature << 18, -14, -14, 18;
  EXPECT_LT((*valley * curvature - Eigen::Matrix2d::Identity()).norm(), 1e-9);
  EXPECT_FALSE(shape_of(turned_valley, 6)) << "too few";
  EXPECT_FALSE(shape_of([](const auto& x) { return x[0] * x[0] - x[1] * x[1]; }, 40))
      << "it falls on both sides";
  EXPECT_FALSE(shape_of([](const auto& x) { return std::pow(x[0], 4) + x[1] * x[1]; }, 40))
      << "its curvature is not the same everywhere";
  EXPECT_FALSE(shape_of([](const auto&) { return 1.0; }, 40));
}

}  // namespace
}  // namespace berth::experiment
