// The greatest rate that one replica serves within its targets, decided by the simulator: what
// Execution::rate_limit asks for. docs/explanation/fleet-model.md, "Percentiles".
//
// Pure; any thread; the same arguments give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/fleet/fleet.h"

namespace berth::fleet {

struct LimitSearch {
  std::size_t requests = 40'000;  // of each simulation; their limits vary by about 1.2 %
  std::uint64_t seed = 1;         // of all of them: only the rate differs between two
  double precision = 0.003;       // part of the rate
};

/// Requests a second; 0: not even a hundredth of the estimate is within the targets. It looks from
/// the estimate outwards and then halves the range, about eight simulations in all; never beyond
/// the end of the closed form's range, where a short history would not show yet that the queue
/// grows. Targets for throughput are no limit. Cost: about 0.15 ms for a thousand requests and a
/// simulation.
double simulated_limit(const RateQuestion& question, const LimitSearch& search = {});

}  // namespace berth::fleet
