// How much longer a task takes, by those like it that have ended. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "berth/base/time.h"

namespace berth::schedule {

/// What is known of how long tasks of one kind take.
struct KnownTimes {
  std::vector<Duration> ended;  ///< Those that have ended well took so long; ascending.
  Duration limit{};             ///< They are ended after so long; 0: never.
};

struct ExpectedTime {
  Duration left{};
  std::size_t by = 0;  ///< How many ended tasks tell it; 0: only the limit does, as the most.
  bool operator==(const ExpectedTime&) const = default;
};

/// How much longer a task goes on that has run for `elapsed`: by the median of those ended ones
/// that took longer than that (of an even number the lower one, which is one of them); where it has
/// outlasted all of them, at most to its limit. nullopt: nothing is known.
std::optional<ExpectedTime> expected_time(const KnownTimes& known, Duration elapsed);

}  // namespace berth::schedule
