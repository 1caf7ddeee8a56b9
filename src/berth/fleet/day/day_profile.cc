// The windows of a day: read from a profile, or cut out of a trace, and checked.
#include <algorithm>
#include <array>
#include <cmath>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/fleet/day/day_path.h"
#include "berth/fleet/measurements/table_lines.h"
#include "berth/fleet/model/system_view.h"
#include "berth/fleet/queueing/queue.h"
#include "berth/fleet/queueing/thinning.h"

namespace berth::fleet {
namespace {

constexpr std::array<std::string_view, 5> kProfileColumns{"time", "server", "arrivalRate",
                                                          "avgInTokens", "avgOutTokens"};
constexpr std::size_t kNeededColumns = 3;
constexpr double kFewGaps = 30;  // between requests: too few to tell how they vary
constexpr double kOnlyWindow_s = 3600;
constexpr double kLatest_s = 400.0 * 24 * 3600;
constexpr double kMostProfileRate = 1e9;  // requests a minute

struct Sums {
  double count = 0, sum = 0, squares = 0;
  void add(double value) { ++count, sum += value, squares += value * value; }
  double mean() const { return sum / std::max(1.0, count); }
  /// Standard deviation / mean.
  double cv() const {
    const double variance = squares / std::max(1.0, count) - mean() * mean();
    const double cv = mean() > 0 ? std::sqrt(std::max(0.0, variance)) / mean() : 0;
    return std::min(cv, kMostVariation);
  }
};

class ProfileReader {
 public:
  ProfileReader(std::string_view name, std::string_view text, const System& system)
      : name_(name), lines_(name, text), system_(system) {}

  Result<Profile> read() {
    BERTH_ASSIGN(columns_,
                 lines_.read_head(kProfileColumns, kNeededColumns, TableLines::Others::refused));
    while (lines_.next())
      if (!trim(lines_.line()).empty()) BERTH_TRY(read_row());
    if (windows_.empty()) return fail(ErrorKind::invalid, "{}: expected rows, got none", name_);
    Profile profile;
    for (auto& [start, loads] : windows_) profile.push_back({start, 0, std::move(loads)});
    for (std::size_t w = 0; w + 1 < profile.size(); ++w)
      profile[w].length_s = profile[w + 1].start_s - profile[w].start_s;
    profile.back().length_s =
        profile.size() > 1 ? profile[profile.size() - 2].length_s : kOnlyWindow_s;
    return profile;
  }

 private:
  Status read_row() {
    BERTH_TRY(lines_.expect_all_fields());
    BERTH_ASSIGN(const double start, time_of(columns_[0]));
    const std::string server(trim(lines_.fields()[columns_[1]]));
    const auto known = system_.servers.find(server);
    if (known == system_.servers.end())
      return lines_.wrong(columns_[1], "a server of the document", server);
    Load load = known->second.current.load;
    BERTH_ASSIGN(load.arrivals_per_min, amount(columns_[2], kMostProfileRate));
    if (is_given(3)) {
      BERTH_ASSIGN(load.in_tokens, amount(columns_[3], kMostTokens));
    }
    if (is_given(4)) {
      BERTH_ASSIGN(load.out_tokens, amount(columns_[4], kMostTokens));
    }
    if (!windows_[start].emplace(server, load).second)
      return lines_.wrong(columns_[1], "each server once at a time", server);
    if (windows_.size() > kMostWindows)
      return lines_.wrong(columns_[0], fmt::format("at most {} times", kMostWindows),
                          lines_.fields()[columns_[0]]);
    return {};
  }

  bool is_given(std::size_t column) const {
    return columns_[column] != TableLines::kNoColumn &&
           !trim(lines_.fields()[columns_[column]]).empty();
  }

  /// HH:MM, HH:MM:SS or seconds.
  Result<double> time_of(std::size_t field) const {
    const auto text = trim(lines_.fields()[field]);
    const auto parts = split(text, ':');
    double seconds = 0;
    bool is_good = parts.size() <= 3;
    for (std::size_t i = 0; i < parts.size() && is_good; ++i) {
      const auto number = parse_number(parts[i]);
      const bool is_clock = parts.size() > 1;
      is_good = number && *number >= 0 && (i == 0 || *number < 60) &&
                (!is_clock || *number == std::floor(*number));
      if (is_good) seconds = 60 * seconds + *number;
    }
    if (parts.size() == 2) seconds *= 60;
    if (!is_good || seconds > kLatest_s) return lines_.wrong(field, "HH:MM or seconds", text);
    return seconds;
  }

  Result<double> amount(std::size_t field, double most) const {
    const auto number = parse_number(trim(lines_.fields()[field]));
    if (!number || *number < 0 || *number > most)
      return lines_.wrong(field, fmt::format("a number from 0 to {:.0f}", most),
                          lines_.fields()[field]);
    return *number;
  }

  std::string_view name_;
  TableLines lines_;
  const System& system_;
  std::vector<std::size_t> columns_;                       // where kProfileColumns stand
  std::map<double, std::map<std::string, Load>> windows_;  // by start
};

Status check_options(const DayOptions& o, const Profile& profile) {
  for (const auto& [what, value] : {std::pair("the cost of a change", o.change_cents),
                                    {"the time that a change costs", o.change_s},
                                    {"the start-up time", o.startup_s},
                                    {"the minimum time up", o.min_up_s},
                                    {"the hysteresis", o.hysteresis}})
    if (!(value >= 0) || value > 1e9)
      return fail(ErrorKind::invalid, "{}: expected 0 or more, got {}", what, value);
  std::size_t to = 0;
  for (std::size_t from = 0; from < profile.size(); ++from) {
    while (to < profile.size() && profile[to].start_s - profile[from].start_s < o.min_up_s) ++to;
    if (to - std::min(to, from) > kMostWindowsUp)
      return fail(ErrorKind::invalid, "the minimum time up: expected at most {} windows, got {} s",
                  kMostWindowsUp, o.min_up_s);
  }
  return {};
}

Status check_profile(const System& system, const Profile& profile) {
  if (profile.empty() || profile.size() > kMostWindows)
    return fail(ErrorKind::invalid, "expected 1 to {} windows, got {}", kMostWindows,
                profile.size());
  for (std::size_t w = 0; w < profile.size(); ++w) {
    const DayWindow& window = profile[w];
    const double end = window.start_s + window.length_s;
    if (!(window.length_s > 0) || !std::isfinite(end) ||
        (w + 1 < profile.size() && std::abs(end - profile[w + 1].start_s) > 1e-3))
      return fail(ErrorKind::invalid,
                  "window {}: expected a length that ends where the next one begins, got {} s", w,
                  window.length_s);
    for (const auto& [name, load] : window.loads) {
      if (!system.servers.contains(name))
        return fail(ErrorKind::invalid, "window {}: no server '{}' is known", w, clip(name));
      if (auto status = check(load); !status)
        return std::unexpected(within(name, std::move(status).error()));
    }
  }
  return {};
}

}  // namespace

Status check_day(const System& system, const Profile& profile, const DayOptions& options) {
  if (system.options.power_budget_w)
    return fail(ErrorKind::invalid, "powerBudget: a day is planned without one");
  if (has_purchases(system))
    return fail(ErrorKind::invalid,
                "capacityData: a day is planned without kinds of purchase, whose prices it would "
                "leave out");
  BERTH_TRY(check_profile(system, profile));
  return check_options(options, profile);
}

Result<Profile> read_profile(std::string_view name, std::string_view text, const System& system) {
  return ProfileReader(name, text, system).read();
}

Result<Profile> profile_of(std::span<const Request> trace, double window_s,
                           const std::map<std::string, double>& parts) {
  if (trace.size() < 2)
    return fail(ErrorKind::invalid, "the trace: expected two requests or more, got {}",
                trace.size());
  const double length_s = trace.back().arrival / 1000;
  if (!(window_s > 0) || length_s / window_s > kMostWindows || !(length_s > 0))
    return fail(ErrorKind::invalid,
                "windows of {} s in a trace of {} s: expected at most {} windows, longer than 0",
                window_s, length_s, kMostWindows);
  const auto count = static_cast<std::size_t>(std::max(1.0, std::round(length_s / window_s)));
  Profile profile;
  for (std::size_t w = 0; w < count; ++w) {
    const double start = window_s * static_cast<double>(w);
    const double end = w + 1 == count ? length_s : start + window_s;
    profile.push_back({start, end - start, {}});
  }
  std::vector<Sums> in(count), out(count), gaps(count);
  Sums all_gaps;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const Request& request = trace[i];
    const auto w = std::min(static_cast<std::size_t>(request.arrival / 1000 / window_s), count - 1);
    in[w].add(request.in_tokens);
    out[w].add(request.out_tokens);
    if (i == 0) continue;
    const double gap = request.arrival - trace[i - 1].arrival;
    if (request.arrival - gap >= 1000 * profile[w].start_s) gaps[w].add(gap);
    all_gaps.add(gap);
  }
  for (std::size_t w = 0; w < count; ++w) {
    const double per_min = in[w].count / (profile[w].length_s / 60);
    const double gap_cv = (gaps[w].count < kFewGaps ? all_gaps : gaps[w]).cv();
    for (const auto& [server, part] : parts) {
      Load& load = profile[w].loads[server];
      load.arrivals_per_min = per_min * part;
      load.in_tokens = in[w].mean();
      load.out_tokens = out[w].mean();
      load.in_cv = in[w].cv();
      load.out_cv = out[w].cv();
      load.arrival_cv = cv_of_part(gap_cv, part);
    }
  }
  return profile;
}

}  // namespace berth::fleet
