// A quadratic model of points, by which a search guesses how good others near them are (as in
// lq-CMA-ES; Hansen, 2019): linear, with squares or with products too, as far as there are points
// enough. It is fitted to the logarithms of ranks, so that it does not depend on the scale of what
// it models and knows the best points best. Pure.
#pragma once

#include <Eigen/Core>
#include <optional>

namespace berth::experiment {

class QuadraticModel {
 public:
  /// The points, one a column, the best first, are to lie about 0 and some units apart. `equal[i]`:
  /// point i is as good as the one before it. nullopt: the points are too few for any model.
  static std::optional<QuadraticModel> fit(const Eigen::MatrixXd& points,
                                           const std::vector<bool>& equal);
  /// The inverse of the curvature of what has these values at the points, one a column, where a
  /// quadratic foretells nearly all of each value from the others: the shape of a valley. nullopt:
  /// it is another shape, or no valley in some direction, or the points are too few.
  static std::optional<Eigen::MatrixXd> valley(const Eigen::MatrixXd& points,
                                               const Eigen::VectorXd& values);
  /// How many points in so many dimensions are enough; more of them, from farther away, blur it.
  static std::size_t enough(Eigen::Index dimensions);
  /// What is expected of a point: the less the better.
  double at(const Eigen::VectorXd& point) const;

 private:
  QuadraticModel(Eigen::Index terms, Eigen::VectorXd weights)
      : terms_(terms), weights_(std::move(weights)) {}

  Eigen::Index terms_;
  Eigen::VectorXd weights_;
};

}  // namespace berth::experiment
