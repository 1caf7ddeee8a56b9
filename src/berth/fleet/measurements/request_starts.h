// The start times of requests that a file lists without them, found from how the tool sends
// requests. Pure.
#pragma once

#include <vector>

#include "berth/fleet/measurements/measured.h"

namespace berth::fleet {

/// How a tool draws the pauses between requests of an open loop.
enum class Pauses : std::uint8_t {
  unknown,
  numpy_seed_0,  // exponential, from numpy's legacy generator with the seed 0
};

/// Sets the starts as the tool makes them by default. Returns false if that is unknown for this
/// load, or if the last request would not end when the run did (within 0.5 % or half a second).
bool find_starts(std::vector<RequestTimes>& requests, const OperatingPoint& point, Pauses pauses);

}  // namespace berth::fleet
