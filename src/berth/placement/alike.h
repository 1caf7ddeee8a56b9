// Interchangeable devices: exchanging two of them changes no score. Real machines have many, and of
// sets that differ only in such devices one need be searched.
#pragma once

#include <cstdint>
#include <vector>

#include "berth/placement/scores.h"

namespace berth::placement {

/// Classes of two and more devices that have the same score to every other device.
std::vector<DeviceSet> alike(const Scores& scores);

/// For every subset of at most kExactDevices, by its bits: the subset with as many devices of every
/// class, the lowest of it. All subsets that share it have the same value, and so do their
/// divisions. Empty where no devices are alike: each subset is its own.
std::vector<std::uint16_t> representatives(const Scores& scores);

}  // namespace berth::placement
