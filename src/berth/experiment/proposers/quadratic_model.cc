#include "berth/experiment/proposers/quadratic_model.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <cmath>

namespace berth::experiment {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kPointsPerTerm = 1.1;  // the fewest (Hansen, 2019)
constexpr double kMostPointsPerTerm = 2;
constexpr Index kMostTerms = 231;   // all of 20 dimensions; a fit takes some ms
constexpr double kForetold = 0.01;  // part of the variance that a valley may leave unexplained
constexpr double kFlattest = 1e-8;  // curvature, of the steepest one
constexpr double kRidge = 1e-5;     // in points: keeps weights small that no point tells of

Index linear_terms(Index dimensions) {
  return 1 + dimensions;
}
Index square_terms(Index dimensions) {
  return 1 + 2 * dimensions;
}
Index all_terms(Index dimensions) {
  return 1 + dimensions + dimensions * (dimensions + 1) / 2;
}

/// The first `count` of: 1, the coordinates, their squares, the products of two.
VectorXd terms_of(const VectorXd& point, Index count) {
  const Index n = point.size();
  VectorXd terms(count);
  terms[0] = 1;
  terms.segment(1, n) = point;
  if (count >= square_terms(n)) terms.segment(1 + n, n) = point.cwiseAbs2();
  if (count < all_terms(n)) return terms;
  for (Index i = 0, at = square_terms(n); i < n; ++i)
    for (Index j = i + 1; j < n; ++j) terms[at++] = point[i] * point[j];
  return terms;
}

}  // namespace

std::size_t QuadraticModel::enough(Index dimensions) {
  return static_cast<std::size_t>(kMostPointsPerTerm *
                                  static_cast<double>(std::min(kMostTerms, all_terms(dimensions))));
}

std::optional<QuadraticModel> QuadraticModel::fit(const MatrixXd& points,
                                                  const std::vector<bool>& equal) {
  const Index n = points.rows(), count = points.cols();
  Index most = 0;
  for (const Index terms : {linear_terms(n), square_terms(n), all_terms(n)})
    if (terms <= kMostTerms &&
        kPointsPerTerm * static_cast<double>(terms) <= static_cast<double>(count))
      most = terms;
  if (most == 0) return std::nullopt;
  MatrixXd terms(most, count);
  VectorXd ranks(count);
  for (Index i = 0; i < count; ++i) {
    terms.col(i) = terms_of(points.col(i), most);
    ranks[i] = i > 0 && equal[static_cast<std::size_t>(i)] ? ranks[i - 1]
                                                           : std::log(static_cast<double>(i) + 0.5);
  }
  MatrixXd squares = terms * terms.transpose();
  squares.diagonal().tail(most - 1).array() += kRidge * static_cast<double>(count);
  return QuadraticModel(most, squares.ldlt().solve(terms * ranks));
}

std::optional<MatrixXd> QuadraticModel::valley(const MatrixXd& points, const VectorXd& values) {
  const Index n = points.rows(), count = points.cols(), most = all_terms(n);
  if (n == 0 || most > kMostTerms ||
      kPointsPerTerm * static_cast<double>(most) > static_cast<double>(count))
    return std::nullopt;
  MatrixXd terms(count, most);
  for (Index i = 0; i < count; ++i) terms.row(i) = terms_of(points.col(i), most);
  const Eigen::ColPivHouseholderQR<MatrixXd> solver(terms);
  if (solver.rank() < most) return std::nullopt;
  const VectorXd weights = solver.solve(values);
  const MatrixXd base = solver.householderQ() * MatrixXd::Identity(count, most);
  // What a fit without a point makes of that point (Allen's PRESS).
  const VectorXd missed =
      ((values - terms * weights).array() / (1 - base.rowwise().squaredNorm().array()).max(1e-9))
          .matrix();
  const double spread = (values.array() - values.mean()).square().sum();
  if (!(missed.squaredNorm() < kForetold * spread)) return std::nullopt;
  MatrixXd curvature = MatrixXd::Zero(n, n);
  curvature.diagonal() = 2 * weights.segment(1 + n, n);
  for (Index i = 0, at = square_terms(n); i < n; ++i)
    for (Index j = i + 1; j < n; ++j) curvature(i, j) = curvature(j, i) = weights[at++];
  const Eigen::SelfAdjointEigenSolver<MatrixXd> axes(curvature);
  const double steepest = axes.eigenvalues().maxCoeff();
  if (!(axes.eigenvalues().minCoeff() > kFlattest * steepest)) return std::nullopt;
  return axes.eigenvectors() * axes.eigenvalues().cwiseInverse().asDiagonal() *
         axes.eigenvectors().transpose();
}

double QuadraticModel::at(const VectorXd& point) const {
  return weights_.dot(terms_of(point, terms_));
}

}  // namespace berth::experiment
