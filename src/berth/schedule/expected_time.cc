#include "berth/schedule/expected_time.h"

#include <algorithm>

namespace berth::schedule {

std::optional<ExpectedTime> expected_time(const KnownTimes& known, Duration elapsed) {
  const auto longer = std::ranges::upper_bound(known.ended, elapsed);
  const auto count = known.ended.end() - longer;
  const bool is_limited = known.limit > Duration{};
  if (count > 0) {
    const Duration whole = *(longer + (count - 1) / 2);
    return ExpectedTime{
        (is_limited ? std::min(whole, std::max(known.limit, elapsed)) : whole) - elapsed,
        static_cast<std::size_t>(count)};
  }
  if (!is_limited || elapsed >= known.limit) return std::nullopt;
  return ExpectedTime{known.limit - elapsed, 0};
}

}  // namespace berth::schedule
