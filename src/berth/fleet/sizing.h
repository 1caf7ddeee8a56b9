// The greatest rate that one replica takes within its targets, and the batch that it takes it with.
// Two models: the reference, and the calibrated one that mends it (docs/fleet.md tells both).
//
// Pure; any thread.
#pragma once

#include "berth/fleet/fleet.h"
#include "berth/fleet/queue.h"

namespace berth::fleet {

/// What of a server does not depend on how much load it has: servers alike share one sizing.
struct Demand {
  double in_tokens = 0, out_tokens = 0;
  int max_batch = 0, max_queue = 0;
  Target target;
  auto operator<=>(const Demand&) const = default;
};

/// What a replica must hold to.
struct Limits {
  Target target;
  double most_loss = 1;  // part of the requests
};

/// A rate in requests a ms, and what kept it from being greater; 0: not even `low` is within.
struct Rate {
  double rate = 0;
  double throughput = 0;  // of it, what is served
  Binding binding = Binding::none;
};
/// The greatest in [low, high]. Where a limit is met, broken and met again as the rate grows (it
/// can be where prefill takes another chunk), one of the rates at which it begins to be broken.
Rate greatest_rate(const Queue& queue, const Limits& limits, double low, double high);
/// The same, looked for from a first `guess`.
Rate greatest_rate(const Queue& queue, const Limits& limits, double low, double high, double guess);

struct Sizing {
  Refusal refusal = Refusal::none;
  Binding binding = Binding::none;
  int batch = 1;
  double rate = 0;     // requests a ms of one replica
  int best_batch = 1;  // calibrated: takes the most, at most 1 % more than `rate`
  double best_rate = 0;
};
Sizing size_replica(const Demand& demand, const Performance& performance, QueueModel model);

/// Replicas for a load of `rate`, at least `least`, and the batch of each.
struct Sized {
  double replicas = 0;  // may be more than an int holds
  int batch = 1;
};
Sized replicas_for(const Sizing& sizing, const Demand& demand, const Performance& performance,
                   QueueModel model, double rate, int least);

/// The range of rates that the reference looks at.
struct Range {
  double low = 0, high = 0;
};
Range reference_range(const Queue& queue);

Queue queue_of(const Demand& demand, const Performance& performance, int batch);

// calibrated.cc
Sizing size_calibrated(const Demand& demand, const Performance& performance);
Sized replicas_calibrated(const Sizing& sizing, const Demand& demand,
                          const Performance& performance, double rate, int least);

inline constexpr double kRateRounding = 1e-9;  // part of a rate
inline constexpr double kMargin = 1e-3;        // how far a rate stays from saturation, and from 0
inline constexpr double kTpsPart = 0.9;        // of the range's end, when a throughput is asked for

inline Sizing refused(Refusal refusal) {
  Sizing sizing;
  sizing.refusal = refusal;
  return sizing;
}

}  // namespace berth::fleet
