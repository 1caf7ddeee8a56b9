// How a server's arrivals reach its replicas, and how many replicas that takes. Behind a random
// router each replica gets a part of the requests, and of bursts only a thinned stream.
//
// Pure; any thread.
#pragma once

#include <cmath>

#include "berth/fleet/queueing/sizing.h"

namespace berth::fleet {

/// The coefficient of variation of the gaps between those requests of a renewal process that fall
/// to one of several receivers with the probability `part`: such a gap is the sum of a geometric
/// number of gaps, so that cv² = part·cv² + 1 − part.
double cv_of_part(double gap_cv, double part);

/// The demand as a replica has it that gets this part of a server's requests: cv_of_part(), to the
/// nearest 0.05, so that replicas of nearly the same number ask the same of Execution::rate_limit.
Demand thinned(Demand demand, double part);

/// Finds the fewest replicas, `least` or more, that take a server's load where each gets its part
/// of the requests. The caller sizes one of replicas() and tells by look() how many of these the
/// load takes, until it is found: two or three times, at most some thirty. More and more even
/// arrivals never need fewer replicas than what it finds for bursts of the same load.
class ReplicaSearch {
 public:
  /// `start`: where to look first, if that is not too early for arrivals that are more even than
  /// Poisson ones.
  ReplicaSearch(double gap_cv, double least, double start);

  double replicas() const { return at_; }
  bool is_found() const { return found_; }
  /// `needed`: so many of those take the load; HUGE_VAL: no number of them does.
  void look(double needed);

 private:
  double gap_cv_;
  double low_;              // all below it take less than the load
  double high_ = HUGE_VAL;  // of bursts: it takes the load
  double at_;
  bool found_ = false;
};

}  // namespace berth::fleet
