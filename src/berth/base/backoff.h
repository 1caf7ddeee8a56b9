// Backoff is the pause before another try: twice as long after each failure in a row, up to a
// longest one, and spread by half, so that those who failed together do not come back together.
//
// Pure: the random number is an argument. Units: whatever the two durations are. It cannot fail.
#pragma once

#include <algorithm>
#include <cstdint>

#include "berth/base/time.h"

namespace berth {

struct Backoff {
  Duration first, most;

  /// The pause after so many failures in a row, from 1: between half of its length and one and a
  /// half of it, by any `random` number.
  Duration pause(std::int64_t failures, std::uint64_t random) const {
    Duration full = std::min(first, most);
    for (int i = 1; i < std::min<std::int64_t>(failures, 64) && full < most; ++i)
      full = std::min(2 * full, most);
    return full / 1024 * (512 + static_cast<std::int64_t>(random % 1024));
  }
};

}  // namespace berth
