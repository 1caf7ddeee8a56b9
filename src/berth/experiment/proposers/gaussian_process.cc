#include "berth/experiment/proposers/gaussian_process.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numbers>

namespace berth::experiment {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

const double kSqrt5 = std::sqrt(5.0);
constexpr double kNoiseMean = -10, kNoiseDeviation = 3;  // of its logarithm, beforehand
constexpr double kUsualLength = 0.3;                     // in one dimension, beforehand
constexpr double kLengthDeviation = 0.5;                 // of the logarithm of a length, beforehand
constexpr double kLeastNoise = -17, kMostNoise = 0;      // of its logarithm
constexpr int kFitSteps = 40;

MatrixXd squared_distances(const MatrixXd& a, const MatrixXd& b) {
  MatrixXd squares = -2 * a * b.transpose();
  squares.colwise() += a.rowwise().squaredNorm();
  squares.rowwise() += b.rowwise().squaredNorm().transpose();
  return squares.cwiseMax(0);
}

/// The kernel of squared distances, and its slope: -2 times its derivative by the square.
MatrixXd matern(const MatrixXd& squares) {
  const auto r = (kSqrt5 * squares.array().sqrt()).eval();
  return ((1 + r + r * r / 3) * (-r).exp()).matrix();
}
MatrixXd matern_slope(const MatrixXd& squares) {
  const auto r = (kSqrt5 * squares.array().sqrt()).eval();
  return (5.0 / 3 * (1 + r) * (-r).exp()).matrix();
}

/// Steps of Rprop (Riedmiller and Braun, 1993): each coordinate goes by the sign of its slope, ever
/// faster while that stays.
struct Rprop {
  VectorXd steps, last;
  double most;
  Rprop(Index count, double first, double greatest)
      : steps(VectorXd::Constant(count, first)), last(VectorXd::Zero(count)), most(greatest) {}
  VectorXd move(const VectorXd& slope) {
    VectorXd by = VectorXd::Zero(slope.size());
    for (Index i = 0; i < slope.size(); ++i) {
      const double sign = slope[i] * last[i];
      if (sign > 0) steps[i] = std::min(most, 1.3 * steps[i]);
      if (sign < 0) steps[i] *= 0.5;
      last[i] = sign < 0 ? 0 : slope[i];
      by[i] = last[i] > 0 ? steps[i] : last[i] < 0 ? -steps[i] : 0;
    }
    return by;
  }
};

}  // namespace

Embedding::Embedding(const std::vector<Parameter>& params) {
  for (std::size_t at = 0; at < params.size(); ++at) {
    first_.push_back(columns());
    choices_.push_back(params[at].choices.size());
    optional_.push_back(!params[at].when.empty());
    const auto width = std::max<std::size_t>(1, choices_.back()) + (optional_.back() ? 1 : 0);
    parameters_.insert(parameters_.end(), width, at);
  }
}

RowVectorXd Embedding::row(const Parts& parts) const {
  RowVectorXd row = RowVectorXd::Zero(columns());
  for (std::size_t at = 0; at < parts.size(); ++at) {
    const auto count = choices_[at];
    const Index begin = first_[at];
    if (!parts[at]) {
      if (count == 0) row[begin] = 0.5;
      // A trial from before a parameter was known lacks it too, as one in the middle of it.
      if (optional_[at]) row[begin + static_cast<Index>(std::max<std::size_t>(1, count))] = 1;
    } else if (count == 0) {
      row[begin] = *parts[at];
    } else {
      const double choice = std::floor(*parts[at] * static_cast<double>(count));
      row[begin + static_cast<Index>(choice)] = std::numbers::sqrt2 / 2;
    }
  }
  return row;
}

MaternKernel fit_kernel(const Embedding& embedding, const MatrixXd& points,
                        const VectorXd& values) {
  const auto count = static_cast<Index>(embedding.parameters());
  const auto n = static_cast<double>(points.rows());
  std::vector<MatrixXd> squares(embedding.parameters(),
                                MatrixXd::Zero(points.rows(), points.rows()));
  for (Index column = 0; column < points.cols(); ++column)
    squares[embedding.parameter(column)] +=
        squared_distances(points.col(column), points.col(column));
  // In more dimensions points are farther apart.
  const double usual = std::log(kUsualLength * std::sqrt(static_cast<double>(count)));
  VectorXd at = VectorXd::Constant(count + 1, usual), best = at;
  at[count] = best[count] = kNoiseMean;
  double least = HUGE_VAL;
  Rprop rprop(count + 1, 0.3, 1);
  for (int step = 0; step < kFitSteps; ++step) {
    MatrixXd distances = MatrixXd::Zero(points.rows(), points.rows());
    for (Index p = 0; p < count; ++p)
      distances += std::exp(-2 * at[p]) * squares[static_cast<std::size_t>(p)];
    MatrixXd covariance = matern(distances);
    const double noise = std::exp(at[count]);
    covariance.diagonal().array() += noise + 1e-10;
    const Eigen::LLT<MatrixXd> factor(covariance);
    if (factor.info() != Eigen::Success) break;
    const MatrixXd inverse = factor.solve(MatrixXd::Identity(points.rows(), points.rows()));
    const VectorXd weights = inverse * values;
    const double scale = std::max(1e-12, values.dot(weights) / n);
    double cost = n / 2 * std::log(scale);
    for (Index i = 0; i < points.rows(); ++i) cost += std::log(factor.matrixLLT()(i, i));
    VectorXd slope(count + 1);
    const MatrixXd half = (inverse - weights * weights.transpose() / scale) / 2;
    const MatrixXd common = half.cwiseProduct(matern_slope(distances));
    for (Index p = 0; p < count; ++p) {
      slope[p] =
          std::exp(-2 * at[p]) * common.cwiseProduct(squares[static_cast<std::size_t>(p)]).sum();
      const double off = (at[p] - usual) / kLengthDeviation;
      cost += off * off / 2;
      slope[p] += off / kLengthDeviation;
    }
    const double off = (at[count] - kNoiseMean) / kNoiseDeviation;
    cost += off * off / 2;
    slope[count] = noise * half.trace() + off / kNoiseDeviation;
    if (cost < least) {
      least = cost;
      best = at;
    }
    at += rprop.move(-slope);
    at[count] = std::clamp(at[count], kLeastNoise, kMostNoise);
  }
  return {best.head(count), best[count]};
}

GaussianProcess::GaussianProcess(const Embedding& embedding, const MaternKernel& kernel,
                                 MatrixXd points, const VectorXd& values)
    : lengths_(embedding.columns()) {
  for (Index column = 0; column < lengths_.size(); ++column)
    lengths_[column] =
        std::exp(kernel.log_lengths[static_cast<Index>(embedding.parameter(column))]);
  scaled_ = std::move(points);
  scaled_.array().rowwise() /= lengths_.array();
  const Index known = values.size(), all = scaled_.rows();
  MatrixXd covariance = matern(squared_distances(scaled_, scaled_));
  const MatrixXd cross = covariance.bottomLeftCorner(all - known, known);
  const MatrixXd own = covariance.topLeftCorner(known, known);
  covariance.diagonal().array() += std::exp(kernel.log_noise) + 1e-10;
  Eigen::LLT<MatrixXd> factor(covariance);
  for (double more = 1e-8; factor.info() != Eigen::Success && more < 1; more *= 100) {
    covariance.diagonal().array() += more;
    factor.compute(covariance);
  }
  lower_ = factor.matrixL();
  // The upper left corner of the factor is that of the points with values.
  const auto corner = lower_.topLeftCorner(known, known);
  VectorXd whole(all);
  VectorXd weights = corner.triangularView<Eigen::Lower>().solve(values);
  scale_ = std::max(1e-12, weights.squaredNorm() / static_cast<double>(known));
  corner.transpose().triangularView<Eigen::Upper>().solveInPlace(weights);
  whole << values, cross * weights;
  means_ = own * weights;
  weights_ = lower_.triangularView<Eigen::Lower>().solve(whole);
  lower_.transpose().triangularView<Eigen::Upper>().solveInPlace(weights_);
}

GaussianProcess::Expected GaussianProcess::at(const RowVectorXd& point) const {
  const RowVectorXd scaled = point.cwiseQuotient(lengths_);
  const MatrixXd away = scaled_.rowwise() - scaled;
  const MatrixXd squares = away.rowwise().squaredNorm();
  const VectorXd near = matern(squares);
  const VectorXd slope = matern_slope(squares);
  VectorXd solved = lower_.triangularView<Eigen::Lower>().solve(near);
  const double left = std::max(1e-12, 1 - solved.squaredNorm());
  lower_.transpose().triangularView<Eigen::Upper>().solveInPlace(solved);
  const double deviation = std::sqrt(scale_ * left);
  Expected expected{.mean = near.dot(weights_),
                    .deviation = deviation,
                    .mean_slope = slope.cwiseProduct(weights_).transpose() * away,
                    .deviation_slope = slope.cwiseProduct(solved).transpose() * away};
  expected.mean_slope.array() /= lengths_.array();
  expected.deviation_slope.array() *= -scale_ / deviation / lengths_.array();
  return expected;
}

std::pair<VectorXd, VectorXd> GaussianProcess::at_all(const MatrixXd& points) const {
  MatrixXd scaled = points;
  scaled.array().rowwise() /= lengths_.array();
  MatrixXd near = matern(squared_distances(scaled_, scaled));
  VectorXd means = near.transpose() * weights_;
  lower_.triangularView<Eigen::Lower>().solveInPlace(near);
  VectorXd left = (1 - near.colwise().squaredNorm().transpose().array()).cwiseMax(1e-12);
  return {std::move(means), (scale_ * left).cwiseSqrt()};
}

}  // namespace berth::experiment
