#include "berth/base/units.h"

#include <array>
#include <charconv>
#include <cmath>

#include "berth/base/checked.h"
#include "berth/base/text.h"

namespace berth {
namespace {

__extension__ typedef __int128 Wide;  // wide enough for any product of two amounts

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

constexpr std::int64_t kKi = 1024;
constexpr std::int64_t kK = 1000;
constexpr std::array<Unit, 13> kSizes{{{"", 1},
                                       {"k", kK},
                                       {"m", kK* kK},
                                       {"g", kK* kK* kK},
                                       {"t", kK* kK* kK* kK},
                                       {"p", kK* kK* kK* kK* kK},
                                       {"e", kK* kK* kK* kK* kK* kK},
                                       {"ki", kKi},
                                       {"mi", kKi* kKi},
                                       {"gi", kKi* kKi* kKi},
                                       {"ti", kKi* kKi* kKi* kKi},
                                       {"pi", kKi* kKi* kKi* kKi* kKi},
                                       {"ei", kKi* kKi* kKi* kKi* kKi* kKi}}};

constexpr std::int64_t kSecond = 1'000'000'000, kMillisecond = kSecond / 1000;
constexpr std::array<Unit, 7> kDurations{{{"", kSecond},
                                          {"ms", kMillisecond},
                                          {"us", kSecond / 1'000'000},
                                          {"s", kSecond},
                                          {"m", 60 * kSecond},
                                          {"h", 3600 * kSecond},
                                          {"d", 86400 * kSecond}}};

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// A decimal read exactly: digits × 10^-places.
struct Decimal {
  std::int64_t digits = 0;
  std::int64_t scale = 1;  // 10^places
};

/// Takes the number off the front of `text`; nullopt where none stands or it does not fit.
std::optional<Decimal> take_decimal(std::string_view& text) {
  Decimal decimal;
  std::size_t at = 0;
  bool any = false;
  bool fraction = false;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && !fraction) {
      fraction = true;
      continue;
    }
    if (!is_digit(text[at])) break;
    any = true;
    const auto tens = checked_mul(decimal.digits, 10);
    const auto sum = tens ? checked_add(*tens, text[at] - '0') : std::nullopt;
    const auto scale = fraction ? checked_mul(decimal.scale, 10) : decimal.scale;
    if (!sum || !scale) return std::nullopt;
    decimal = {*sum, *scale};
  }
  if (!any) return std::nullopt;
  text.remove_prefix(at);
  return decimal;
}

std::optional<std::int64_t> scaled(Decimal decimal, std::int64_t factor) {
  while (decimal.scale > 1 && decimal.digits % 10 == 0) {
    decimal.digits /= 10;
    decimal.scale /= 10;
  }
  const auto product = static_cast<Wide>(decimal.digits) * factor;
  if (product % decimal.scale != 0) return std::nullopt;
  const auto value = product / decimal.scale;
  if (value > INT64_MAX) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

template <std::size_t N>
const Unit* find_unit(const std::array<Unit, N>& units, std::string_view name) {
  for (const auto& unit : units)
    if (unit.name == name) return &unit;
  return nullptr;
}

}  // namespace

Result<std::int64_t> parse_bytes(std::string_view text) {
  std::string_view rest = trim(text);
  const auto decimal = take_decimal(rest);
  std::string suffix = lower(trim(rest));
  if (!suffix.empty() && suffix.back() == 'b') suffix.pop_back();
  const Unit* unit = find_unit(kSizes, suffix);
  const auto bytes = decimal && unit ? scaled(*decimal, unit->factor) : std::nullopt;
  if (!bytes)
    return fail(ErrorKind::invalid, "expected a size such as 512MiB, 10G or 4096, got '{}'",
                clip(text));
  return *bytes;
}

std::string format_bytes(std::int64_t bytes) {
  constexpr std::array<std::string_view, 7> kNames{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  std::size_t step = 0;
  for (; std::abs(value) >= 1023.95 && step + 1 < kNames.size(); ++step) value /= 1024;
  if (step == 0) return fmt::format("{} B", bytes);
  std::string number = fmt::format("{:.1f}", value);
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return fmt::format("{} {}", number, kNames.at(step));
}

std::string written_bytes(std::int64_t bytes) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 6> kUnits{
      {{"T", 1'000'000'000'000},
       {"Gi", std::int64_t{1} << 30},
       {"G", 1'000'000'000},
       {"Mi", std::int64_t{1} << 20},
       {"M", 1'000'000},
       {"K", 1'000}}};
  for (const auto& [unit, size] : kUnits) {
    if (bytes < size) continue;
    if (bytes % size == 0) return fmt::format("{}{}", bytes / size, unit);
    // Thousandths of a decimal unit are whole bytes.
    if (unit.size() == 1 && bytes % (size / 1000) == 0)
      return fmt::format("{}{}", format_milli(bytes / (size / 1000)), unit);
  }
  return fmt::format("{}", bytes);
}

Result<std::int64_t> parse_milli(std::string_view text) {
  std::string_view rest = trim(text);
  const auto decimal = take_decimal(rest);
  const auto milli = decimal && rest.empty() ? scaled(*decimal, 1000) : std::nullopt;
  if (!milli)
    return fail(ErrorKind::invalid,
                "expected an amount such as 2 or 1.5 (thousandths at most), got '{}'", clip(text));
  return *milli;
}

std::string format_milli(std::int64_t milli) {
  const std::int64_t fraction = std::abs(milli % 1000);
  std::string text = fmt::format("{}{}", milli < 0 ? "-" : "", std::abs(milli / 1000));
  if (fraction == 0) return text;
  text += fmt::format(".{:03}", fraction);
  while (text.back() == '0') text.pop_back();
  return text;
}

Result<Duration> parse_age(std::string_view text) {
  BERTH_ASSIGN(const Duration age, parse_duration(text));
  if (age > Duration(0) && (is_digit(trim(text).back()) || trim(text).back() == '.'))
    return fail(ErrorKind::invalid,
                "'{0}' has no unit: expected {0}d for days, or {0}h, {0}m, {0}s", clip(trim(text)));
  return age;
}

Result<Duration> parse_duration(std::string_view text) {
  const auto bad = [&] {
    return fail(ErrorKind::invalid, "expected a duration such as 90s, 10m or 1h30m, got '{}'",
                clip(text));
  };
  std::string_view rest = trim(text);
  if (rest.empty()) return bad();
  std::int64_t total = 0;
  bool bare = false;
  bool first = true;
  while (!rest.empty()) {
    const auto decimal = take_decimal(rest);
    std::size_t letters = 0;
    while (letters < rest.size() && !is_digit(rest[letters]) && rest[letters] != '.') ++letters;
    const Unit* unit = find_unit(kDurations, lower(trim(rest.substr(0, letters))));
    rest.remove_prefix(letters);
    const auto ns = decimal && unit ? scaled(*decimal, unit->factor) : std::nullopt;
    const auto sum = ns ? checked_add(total, *ns) : std::nullopt;
    if (!sum || bare) return bad();
    bare = unit->name.empty();  // then it must stand alone
    if (bare && !first) return bad();
    first = false;
    total = *sum;
  }
  const std::int64_t beyond = total % kMillisecond;
  const auto rounded = checked_add(total, beyond == 0 ? 0 : kMillisecond - beyond);
  if (!rounded) return bad();
  return Duration(*rounded);
}

std::string format_duration(Duration duration) {
  const std::int64_t ms = to_ms(duration);
  if (ms < 0) return "0s";
  if (ms < 1000) return fmt::format("{}ms", ms);
  const std::int64_t seconds = ms / 1000;
  if (seconds < 60) return fmt::format("{:.1f}s", static_cast<double>(ms / 100) / 10);
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{}d{:02}h", seconds / 86400, seconds / 3600 % 24);
}

std::string format_utc(Wall time) {
  const auto days = std::chrono::floor<std::chrono::days>(time.time_since_epoch());
  const std::chrono::year_month_day date{std::chrono::sys_days(days)};
  const std::int64_t ms = to_ms(time.time_since_epoch() - days);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     ms / 3'600'000, ms / 60'000 % 60, ms / 1000 % 60, ms % 1000);
}

Result<Wall> parse_utc(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
  const auto wrong = [&] {
    return fail(ErrorKind::invalid, "expected a time such as 2026-11-21T05:04:03Z, got '{}'",
                clip(text));
  };
  std::string whole(text);
  if (whole.size() == kForm.size() - 3 && whole.ends_with('Z'))
    whole.insert(whole.size() - 1, ":00");
  if (whole.size() != kForm.size()) return wrong();
  for (std::size_t i = 0; i < kForm.size(); ++i)
    if (kForm[i] == '0' ? !(whole[i] >= '0' && whole[i] <= '9') : whole[i] != kForm[i])
      return wrong();
  const auto part = [&](std::size_t at, std::size_t size) {
    return static_cast<int>(*parse_integer(std::string_view(whole).substr(at, size)));
  };
  const std::chrono::year_month_day date{std::chrono::year(part(0, 4)),
                                         std::chrono::month(static_cast<unsigned>(part(5, 2))),
                                         std::chrono::day(static_cast<unsigned>(part(8, 2)))};
  const int hour = part(11, 2), minute = part(14, 2), second = part(17, 2);
  // What nanoseconds in 64 bits can tell.
  if (!date.ok() || date.year() < std::chrono::year(1678) ||
      date.year() > std::chrono::year(2261) || hour > 23 || minute > 59 || second > 59)
    return wrong();
  return Wall(std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(hour) +
              std::chrono::minutes(minute) + std::chrono::seconds(second));
}

Result<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return fail(ErrorKind::invalid, "expected a whole number, got '{}'", clip(text));
  return value;
}

Result<double> parse_number(std::string_view text) {
  double value = 0;
  std::string_view digits =
      text.starts_with('+') && !text.starts_with("+-") ? text.substr(1) : text;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value))
    return fail(ErrorKind::invalid, "expected a number, got '{}'", clip(text));
  return value;
}

std::int64_t round_amount(double value) {
  const std::int64_t nearest = std::llround(value);
  return nearest == 0 && value > 0 ? 1 : nearest;
}

std::string format_number(double value) {
  return fmt::format("{}", value);
}

}  // namespace berth
