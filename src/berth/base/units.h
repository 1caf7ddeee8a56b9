// Units as people write them, exact integers inside. G is 10^9 and Gi is 2^30, with or without a
// final B, in any case; cores may be fractions of a thousandth; durations combine (1h30m).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "berth/base/result.h"
#include "berth/base/time.h"

namespace berth {

/// "10G", "512MiB", "2gb", "1.5Gi", "4096" -> bytes; a fraction of a byte is an error.
Result<std::int64_t> parse_bytes(std::string_view text);
/// The shortest of B, KiB … PiB with at most one decimal; for people, so rounded.
std::string format_bytes(std::int64_t bytes);

/// "100M", "1.5G", "512Mi": as a file would have it; parse_bytes() gives the same number again.
std::string written_bytes(std::int64_t bytes);

/// "1.5", "2" -> thousandths: 1500, 2000. Also for amounts of a person's own names.
Result<std::int64_t> parse_milli(std::string_view text);
/// 1500 -> "1.5". Exact.
std::string format_milli(std::int64_t milli);

/// "10m", "1h30m", "90s", "250ms", "2d"; a bare number is seconds. At least 0, in whole
/// milliseconds: a fraction of one is rounded up, so that a short limit never becomes 0, which
/// often means none.
Result<Duration> parse_duration(std::string_view text);
/// The same, but only 0 may stand without a unit: whoever writes an age of 7 may mean days.
Result<Duration> parse_age(std::string_view text);
/// "350ms", "4.2s", "3m05s", "2h10m", "3d04h"; for people, so rounded.
std::string format_duration(Duration duration);

/// "2026-11-21T05:04:03.123Z".
std::string format_utc(Wall time);
/// "2026-11-21T05:04:03Z", to seconds; "…T05:04Z" too. Errors: invalid.
Result<Wall> parse_utc(std::string_view text);

/// A decimal integer, the whole text of it.
Result<std::int64_t> parse_integer(std::string_view text);
/// A finite decimal number, the whole text of it.
Result<double> parse_number(std::string_view text);
/// The nearest whole number, but 1 for what is above 0 and below 1/2: an amount never becomes none.
std::int64_t round_amount(double value);
/// The shortest decimal text that reads back as the same double.
std::string format_number(double value);

}  // namespace berth
