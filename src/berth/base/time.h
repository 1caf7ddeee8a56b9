// Two clocks that cannot be mixed up: Mono measures, Wall dates. Neither is read here: os/Env does.
#pragma once

#include <chrono>
#include <cstdint>

namespace berth {

using Duration = std::chrono::nanoseconds;

struct MonoClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<MonoClock>;
  static constexpr bool is_steady = true;
};
struct WallClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<WallClock>;
  static constexpr bool is_steady = false;
};

using Mono = MonoClock::time_point;
using Wall = WallClock::time_point;  // since 1970-01-01 UTC

inline std::int64_t to_ms(Duration d) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
}
inline std::int64_t to_ms(Wall t) {
  return to_ms(t.time_since_epoch());
}
inline Duration from_ms(std::int64_t ms) {
  return std::chrono::milliseconds(ms);
}
inline Wall wall_from_ms(std::int64_t ms) {
  return Wall(from_ms(ms));
}

}  // namespace berth
