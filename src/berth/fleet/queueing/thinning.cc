#include "berth/fleet/queueing/thinning.h"

#include <algorithm>

namespace berth::fleet {
namespace {

constexpr double kStepsOfVariation = 20;  // in 1; a step moves limits by half a percent

double cv_in_steps(double gap_cv, double part) {
  return std::round(kStepsOfVariation * cv_of_part(gap_cv, part)) / kStepsOfVariation;
}

}  // namespace

double cv_of_part(double gap_cv, double part) {
  return std::sqrt(1 + part * (gap_cv * gap_cv - 1));
}

Demand thinned(Demand demand, double part) {
  demand.arrival_cv = cv_in_steps(demand.arrival_cv, part);
  return demand;
}

ReplicaSearch::ReplicaSearch(double gap_cv, double least, double start)
    : gap_cv_(gap_cv), low_(least), at_(gap_cv > 1 ? std::max(least, start) : least) {}

void ReplicaSearch::look(double needed) {
  needed = std::max(needed, low_);
  const double cv = cv_in_steps(gap_cv_, 1 / at_);
  // As many see the same: one of them takes the same. (1 / HUGE_VAL is 0: Poisson arrivals.)
  found_ = cv == cv_in_steps(gap_cv_, 1 / needed);
  if (found_) {
    if (needed < HUGE_VAL) at_ = needed;
    return;
  }
  if (gap_cv_ <= 1) {
    // The more there are, the less even are the arrivals of each: what is needed grows with the
    // number, and from below the first number that needs no more is the least.
    found_ = needed <= at_ || needed == HUGE_VAL;
    at_ = found_ ? at_ : needed;
    return;
  }
  // The more there are, the more each takes: one number that is enough bounds from above, and what
  // it would need, or one more than what is too few, from below.
  if (needed <= at_) {
    high_ = at_;
    low_ = needed;
    found_ = low_ == high_;
  } else {
    low_ = at_ + 1;
    high_ = high_ > at_ ? std::min(high_, needed) : needed;  // no simulation is quite monotone
  }
  if (!found_) at_ = high_ < HUGE_VAL ? std::floor((low_ + high_) / 2) : 2 * at_;
}

}  // namespace berth::fleet
