// The groups of the static policies, as data.
#pragma once

#include <span>

#include "berth/placement/placement.h"

namespace berth::placement {

/// The sizes of groups that a static policy knows; empty for other policies.
std::span<const int> group_sizes(PolicyKind policy);

/// The policy's groups of a size, the first choice first; empty for a size that it does not know.
std::span<const DeviceSet> groups(PolicyKind policy, int count);

}  // namespace berth::placement
