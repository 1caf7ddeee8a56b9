#include "berth/remote/transfer/validators.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::remote {
namespace {

constexpr std::int64_t kStrongAfter = 60;  // seconds between Last-Modified and Date
constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/// A number of exactly `digits` digits, at most `most`; -1: it is not one.
std::int64_t number(std::string_view text, std::size_t digits, std::int64_t most) {
  const bool is_plain = text.size() == digits &&
                        std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  const auto value = is_plain ? parse_integer(text).value_or(-1) : -1;
  return value <= most ? value : -1;
}

}  // namespace

std::optional<std::int64_t> http_seconds(std::string_view text) {
  using namespace std::chrono;
  const auto parts = split(text, ' ');  // "Sun," "06" "Nov" "1994" "08:49:37" "GMT"
  if (parts.size() != 6 || parts[0].size() != 4 || !parts[0].ends_with(',') || parts[5] != "GMT")
    return std::nullopt;
  const auto month_name = std::ranges::find(kMonths, parts[2]);
  const auto time = split(parts[4], ':');
  if (month_name == kMonths.end() || time.size() != 3) return std::nullopt;
  const auto hours = number(time[0], 2, 23), minutes = number(time[1], 2, 59),
             seconds = number(time[2], 2, 60);
  const year_month_day date{
      year(static_cast<int>(number(parts[3], 4, 9999))),
      month(static_cast<unsigned>(month_name - kMonths.begin()) + 1),
      day(static_cast<unsigned>(std::max<std::int64_t>(number(parts[1], 2, 31), 0)))};
  if (hours < 0 || minutes < 0 || seconds < 0 || !date.ok() || date.year() < year(0))
    return std::nullopt;
  constexpr std::int64_t kDay = 86400, kHour = 3600, kMinute = 60;
  return std::int64_t{sys_days(date).time_since_epoch().count()} * kDay + hours * kHour +
         minutes * kMinute + seconds;
}

bool is_strong_etag(std::string_view etag) {
  return etag.size() >= 2 && etag.starts_with('"') && etag.ends_with('"');
}

bool is_strong_date(std::string_view modified, std::string_view date) {
  const auto of_file = http_seconds(modified), of_answer = http_seconds(date);
  return of_file && of_answer && *of_answer - *of_file >= kStrongAfter;
}

}  // namespace berth::remote
