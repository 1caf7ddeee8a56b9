// Sizing: the greatest rate that one replica serves within its targets, and the batch for it, by
// the reference model or the calibrated one, which corrects it (docs/explanation/fleet-model.md
// explains both).
//
// Pure; any thread.
#pragma once

#include "berth/fleet/fleet.h"
#include "berth/fleet/queueing/queue.h"

namespace berth::fleet {

/// The properties of a server that do not depend on its amount of load; equal ones share one
/// sizing.
struct Demand {
  double in_tokens = 0, out_tokens = 0;
  int max_batch = 0, max_queue = 0;
  Target target;
  double in_cv = 0, out_cv = 0, arrival_cv = 1;
  LengthHistogram in_histogram{}, out_histogram{};  // in place of a variation, as in Load
  Role role = Role::whole;
  auto operator<=>(const Demand&) const = default;
};
Demand demand_of(const Load& load, const Server& server, const Target& target);
/// What a replica of a pool is asked for. The one that prefills makes an answer's first token and
/// has the targets for TTFT, to which the transfer of the cache counts; the one that decodes makes
/// the others.
Demand demand_of(Demand whole, Role role);

struct Limits {
  Target target;
  double most_loss = 1;  // fraction of the requests
};

/// A rate in requests a millisecond and its binding constraint; 0: not even `low` is within the
/// limits.
struct Rate {
  double rate = 0;
  double throughput = 0;  // the part of the rate that is served
  Binding binding = Binding::none;
};
/// The greatest rate in [low, high] within the limits. If a limit is met, exceeded and met again as
/// the rate grows (where prefill takes another chunk), the result is one of the rates where it
/// begins to be exceeded.
Rate greatest_rate(const Queue& queue, const Limits& limits, double low, double high);
/// The same, starting at a first `guess`.
Rate greatest_rate(const Queue& queue, const Limits& limits, double low, double high, double guess);

struct Sizing {
  Refusal refusal = Refusal::none;
  Binding binding = Binding::none;
  int batch = 1;
  double rate = 0;     // requests a ms of one replica
  int best_batch = 1;  // calibrated: the batch of the greatest rate, at most 1 % above `rate`
  double best_rate = 0;
  bool is_asked_for = false;  // the rate is Execution::rate_limit's
};
/// Why nothing is served where that binds even a nearly idle replica.
Refusal refusal_of(Binding binding);
/// Whether a percentile's target is not met, and which one that is.
bool is_of_percentile(Refusal refusal);
Binding binding_of(Refusal refusal);

Sizing size_replica(const Demand& demand, const Performance& performance, QueueModel model);

/// The number of replicas that take a load of `rate`, which may be more than an int holds; HUGE_VAL
/// where the sizing is refused.
double replicas_for(const Sizing& sizing, QueueModel model, double rate);
/// The batch of a replica that gets this rate.
int batch_for(const Sizing& sizing, const Demand& demand, const Performance& performance,
              QueueModel model, double rate);

/// A replica under a load of `rate` requests a ms.
Operation operation_at(const Demand& demand, const Performance& performance, int batch, double rate,
                       QueueModel model);

/// The percentiles of a replica under a load of `rate`, by the calibrated model.
Percentiles percentiles_at(const Demand& demand, const Performance& performance, int batch,
                           double rate);

/// Sets the figures of an allocation's replicas, each of which has a load of `rate`.
void set_figures(Allocation& allocation, const Demand& demand, const Performance& performance,
                 double rate, QueueModel model);

/// The range of rates that the reference model considers.
struct Range {
  double low = 0, high = 0;
};
Range reference_range(const Queue& queue);

// calibrated.cc
Sizing size_calibrated(const Demand& demand, const Performance& performance);
int batch_calibrated(const Sizing& sizing, const Demand& demand, const Performance& performance,
                     double rate);

inline constexpr double kRateRounding = 1e-9;  // part of a rate
inline constexpr double kMargin = 1e-3;        // how far a rate stays from saturation, and from 0
inline constexpr double kMostLoss = 0.01;      // part of the requests that may find no place
/// Of requests that go through two pools, each may lose a half.
inline double most_loss(Role role) {
  return role == Role::whole ? kMostLoss : kMostLoss / 2;
}
inline constexpr double kTpsPart = 0.9;  // of the range's end, when a throughput is asked for

inline Sizing refused(Refusal refusal) {
  Sizing sizing;
  sizing.refusal = refusal;
  return sizing;
}

}  // namespace berth::fleet
