// A Gaussian process over points of a space, by which a search knows what it knows: Matérn kernel
// of smoothness 5/2 with a length of its own for each parameter (Rasmussen and Williams, 2006),
// whose lengths and noise are the most probable ones (MAP). Pure.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "berth/experiment/proposers/sampler.h"

namespace berth::experiment {

/// The points of a space as rows of numbers, between which the kernel measures distances: a range
/// is its coordinate, choices are corners that are equally far from each other, and what a point
/// does not have is as far from all its values.
class Embedding {
 public:
  explicit Embedding(const std::vector<Parameter>& params);
  Eigen::Index columns() const { return static_cast<Eigen::Index>(parameters_.size()); }
  std::size_t parameters() const { return first_.size(); }
  /// The parameter that a column is of, and the column in which a range has its coordinate.
  std::size_t parameter(Eigen::Index column) const {
    return parameters_[static_cast<std::size_t>(column)];
  }
  Eigen::Index first(std::size_t parameter) const { return first_[parameter]; }
  Eigen::RowVectorXd row(const Parts& parts) const;

 private:
  std::vector<std::size_t> parameters_;  // by column
  std::vector<Eigen::Index> first_;      // by parameter
  std::vector<std::size_t> choices_;     // by parameter; 0: a range
  std::vector<bool> optional_;           // by parameter
};

struct MaternKernel {
  Eigen::VectorXd log_lengths;  // by parameter
  double log_noise = -9;        // the variance of noise as a part of the whole
};

/// The most probable kernel for these points (rows of an embedding) with these values, which have
/// mean 0 and variance 1. Some ms for 150 points.
MaternKernel fit_kernel(const Embedding& embedding, const Eigen::MatrixXd& points,
                        const Eigen::VectorXd& values);

class GaussianProcess {
 public:
  /// The last `open` points have no values yet: they are taken for what the others let expect.
  GaussianProcess(const Embedding& embedding, const MaternKernel& kernel, Eigen::MatrixXd points,
                  const Eigen::VectorXd& values);

  struct Expected {
    double mean, deviation;
    Eigen::RowVectorXd mean_slope, deviation_slope;  // along the columns
  };
  Expected at(const Eigen::RowVectorXd& point) const;
  /// The same for many points, without slopes: means and deviations.
  std::pair<Eigen::VectorXd, Eigen::VectorXd> at_all(const Eigen::MatrixXd& points) const;
  /// The means of its own points that have values.
  const Eigen::VectorXd& means() const { return means_; }

 private:
  Eigen::MatrixXd scaled_, lower_;
  Eigen::RowVectorXd lengths_;  // by column
  Eigen::VectorXd weights_, means_;
  double scale_ = 1;
};

}  // namespace berth::experiment
