// Linear least squares of a few non-negative terms, by normal equations.
#pragma once

#include <array>

#include "berth/fleet/fit/fit.h"

namespace berth::fleet {

using TermMask = std::array<bool, kTerms>;
using TermMatrix = std::array<Terms, kTerms>;

/// Σ w·x·xᵀ, Σ w·x·y and Σ w·y² of the rows (x, y) with weights w.
struct NormalEquations {
  TermMatrix xx{};
  Terms xy{};
  double yy = 0;
  void add(const Terms& x, double y, double w);
};

struct LeastSquares {
  Terms x{};
  Terms variance{};     // of each term above 0, for rows of variance 1 / weight
  double residual = 0;  // Σ w·(y − xᵀx)²
};
/// The least sum of squares with every term >= 0 and those outside the mask 0. All choices of terms
/// that are above 0 are tried, which is exact and, for five, fast. Terms that the rows cannot tell
/// from others are 0.
LeastSquares solve_nonnegative(const NormalEquations& normal, const TermMask& mask);

/// The condition number of the design with columns scaled to the same length (Belsley, Kuh and
/// Welsch, 1980), and the direction that it tells least about.
struct Condition {
  double number = 1;
  Terms weakest{};
};
Condition condition_of(const NormalEquations& normal, const TermMask& mask);

/// ln det of the scaled information about the terms of the mask, each known to within `scale`
/// beforehand; and the variances.
struct Information {
  double log_det = 0;
  Terms variance{};
};
Information information_of(const TermMatrix& xx, const TermMask& mask, const Terms& scale);

}  // namespace berth::fleet
