// The best ring through a set of devices: of all closed tours, the one whose weakest link is the
// strongest (the bottleneck travelling salesman problem). Two devices have their one link, fewer 0.
#pragma once

#include <cstdint>
#include <vector>

#include "berth/placement/scores.h"

namespace berth::placement {

inline constexpr int kQuickRingDevices = 10;

/// The rings of every subset of at most kExactDevices, by its bits: 2^devices entries. Held and
/// Karp's dynamic programme (1962) over (set, end of a path from the set's lowest device), on ranks
/// of scores.
std::vector<std::int32_t> rings_of_all_subsets(const Scores& scores);

/// The best ring of a set: exact up to kExactDevices (2 ms at 16), above as quick_ring_of().
std::int32_t ring_of(const Scores& scores, DeviceSet set);

/// The weakest link of a ring that exists: of the best one up to kQuickRingDevices. Above, tours
/// are sought in the graph of links of at least a threshold by rotation and extension (Pósa, 1976),
/// the threshold by bisection.
std::int32_t quick_ring_of(const Scores& scores, DeviceSet set);

}  // namespace berth::placement
