// A day of a fleet: its load comes in windows, and each window has a plan that takes the one before
// it into account, since replicas take time to start, cost something when they come and go, and
// should not come and go too often. docs/explanation/fleet-days.md, "A day".
//
// Pure; any thread. The same arguments give the same bytes, whatever the order of the entries and
// whatever executes them, unless Execution::stop ended the search.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/fleet/fleet.h"
#include "berth/fleet/simulate/traffic.h"

namespace berth::fleet {

inline constexpr std::size_t kMostWindows = 2000;
inline constexpr std::size_t kMostWindowsUp = 64;  // that the minimum time up may span

struct DayWindow {
  double start_s = 0, length_s = 0;
  std::map<std::string, Load> loads;  // by server; who is missing keeps the load that it had before
};
using Profile = std::vector<DayWindow>;  // by time; each begins where the one before it ends

/// Reads "time,server,arrivalRate[,avgInTokens,avgOutTokens]", the names of the columns in any
/// order and case, the rows too; a time is HH:MM or seconds, a rate requests a minute. A window
/// ends where the next one begins; the last is as long as the one before it, a single one an hour.
/// Tokens that are not given, or empty, are those of the system's server. Errors: invalid,
/// "NAME:3:7: wanted …", with the line and the place in it.
Result<Profile> read_profile(std::string_view name, std::string_view text, const System& system);

/// Cuts a trace into windows of this length; the last is half as long to half as long again. Each
/// server gets its part of the requests (by name, in 0..1), drawn at random, with the tokens of the
/// window, their means and variation, and the variation of the gaps between arrivals: those of the
/// window, or of the whole trace where it has few.
/// Errors: invalid: fewer than two requests, a length that is not positive, too many windows.
Result<Profile> profile_of(std::span<const Request> trace, double window_s,
                           const std::map<std::string, double>& parts);

struct DayOptions {
  double change_cents = 0;  // of each start and each stop of a replica,
  double change_s = 0;      // and what a replica costs in so much time
  double startup_s = 0;     // a replica costs and takes capacity so long before it serves
  double min_up_s = 0;      // a server that got more replicas gives none up for so long
  double hysteresis = 0;    // greedy: moves only to save more than this part of what staying costs
};

struct DayAllocation {
  std::string accelerator;  // "": nothing
  int replicas = 0;
  bool serves = true;  // the load within its targets, or there is none
  bool late = false;   // what is new starts with the window, for want of room before it
  bool operator==(const DayAllocation&) const = default;
};

/// What the servers have, window after window. Money in cents.
struct DayPlan {
  std::vector<std::vector<DayAllocation>> allocations;  // by window, then by server
  std::vector<double> costs;                            // by window, with what its starts cost
  std::vector<double> server_costs;                     // by server, of the day
  std::vector<double> short_s;  // by window: so long its new replicas do not serve at its beginning
  double cost = 0;              // of the day
  std::int64_t starts = 0, stops = 0;  // of replicas; before the first window all are up
  std::int64_t changes = 0;            // of a server from one window to the next
  std::int64_t flaps = 0;              // stops within the minimum time up (30 minutes if that is 0)
                                       // after a start of the same server
  double unserved_h = 0;               // server-hours, with the start-up of late ones
};

struct Unservable {
  std::size_t window = 0, server = 0;
  std::string reason;
};

struct Day {
  std::vector<std::string> servers;  // ascending
  Profile windows;                   // with the loads of all servers
  /// By server, then by accelerator: the most requests that one replica is to serve at once, of all
  /// windows.
  std::vector<std::map<std::string, int>> batches;
  DayPlan static_plan;   // for each server the cheapest that does in all windows
  DayPlan greedy;        // each window by what it and its changes cost
  DayPlan best;          // the least cost of the whole day that was found
  double bound = 0;      // no day costs less, where capacity is not short; else
                         // docs/explanation/fleet-days.md. 0 where it was stopped early
  double gap = 0;        // (best − bound) / best, with the weight of the unserved
  bool stopped = false;  // by Execution::stop
  /// No accelerator serves them, whatever capacity there is. They keep what they had in the window
  /// before, in the beginning of the day what they get in the first window that something serves,
  /// so that nothing is saved by not serving them.
  std::vector<Unservable> unservable;
  double unservable_h = 0;  // server-hours of these
};

/// Errors: invalid: no window or too many, windows that do not follow one another, a server that is
/// not known, a bad load, options that are negative, a minimum time up of too many windows.
Status check_day(const System& system, const Profile& profile, const DayOptions& options);

/// Plans the day with the queue model and the capacities of the system; the solver `unlimited`
/// leaves the latter out. Mixes are not looked at. Errors: as check_day().
Result<Day> plan_day(const System& system, const Profile& profile, const DayOptions& options,
                     const Execution& execution = {});

}  // namespace berth::fleet
