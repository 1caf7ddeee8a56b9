// The policy packed: the best set of k by an objective; among equals the one with the most pairs of
// devices on one NUMA node, then the one that leaves the best sets to later jobs.
#pragma once

#include "berth/placement/tables.h"

namespace berth::placement {

/// The set of the highest value that has the required devices and is not `excluded`; among equals
/// the one with the most pairs on one NUMA node, then the one whose remaining available devices
/// have the best 8-set, then 4-set, then 2-set, then the lowest indices. Empty when there is none.
/// 1 <= count <= 16. At most 12,870 sets are looked at.
DeviceSet best_set(const Tables& tables, const Question& question, DeviceSet excluded = 0);

}  // namespace berth::placement
