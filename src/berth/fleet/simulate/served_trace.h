// A trace, served by replicas that come and go: how many serve at which time, and what its requests
// attained.
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "berth/fleet/simulate/simulator.h"

namespace berth::fleet {

/// From at_s on so many replicas are wanted. Those that this has more serve from up_s on, and those
/// that it has fewer go at once.
struct WantedReplicas {
  double at_s = 0, up_s = 0;
  int replicas = 1;
};

/// How many serve at a time: the fewest of what was wanted since the last of it that is up; at
/// first `first`. Precondition: neither at_s nor up_s falls from one to the next, and up_s >= at_s.
int serving_at(int first, std::span<const WantedReplicas> wanted, double at_s);
/// The same over all times, for Deployment::changes.
std::vector<ReplicaChange> changes_of(int first, std::span<const WantedReplicas> wanted);

/// What the requests of a trace attained.
struct Attainment {
  std::int64_t requests = 0, lost = 0;
  double mean_ttft_ms = 0, mean_itl_ms = 0;
  Percentiles percentiles{};
  /// What a request's TTFT should be within: the target for the highest percentile that has one,
  /// else that for the mean; 0: there is none. The part of the requests that was within it, and the
  /// five minutes (or the whole, where that is shorter) in which it was smallest, with their rate.
  /// A request that is lost is not within it.
  double within_ms = 0, within = 1, worst_within = 1, worst_at_s = 0, worst_per_min = 0;
};

/// `outcome` is what simulate() measured of the whole trace, which has a request or more; ttft_ms
/// is by request: NaN where it was lost.
Attainment attainment_of(const Outcome& outcome, std::span<const Request> trace,
                         std::span<const double> ttft_ms, const Target& target);

}  // namespace berth::fleet
