// One server over the windows of a day: what it may have, what that costs, and its cheapest path.
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "berth/fleet/day/day.h"

namespace berth::fleet {

/// So many replicas of one accelerator.
struct DayLevel {
  std::uint32_t accelerator = Candidate::kNothing;
  std::size_t type = 0;
  int replicas = 0;
  int batch = 0;  // the most that a window asks for with so many replicas
  std::int64_t units_each = 0;
  double cost_each = 0;  // cents an hour
  double cost() const { return cost_each * replicas; }
  double units() const { return static_cast<double>(units_each * replicas); }
};

/// What a server may have. levels[0] is nothing; the others stand by accelerator, then by replicas,
/// and are what some window needs of it.
struct DayServer {
  std::vector<DayLevel> levels;
  std::vector<std::vector<bool>> serves;  // by window, then by level
  std::vector<std::string> unservable;    // by window: why nothing serves it; "": something does
  std::size_t first_servable = 0;         // window; 0 where none is
  double weight = 0;                      // cents an hour while unserved

  bool is_unservable(std::size_t window) const { return !unservable[window].empty(); }
  /// A window that nothing serves goes unserved with what there was before it; at the beginning of
  /// the day, with what the first window has that something serves.
  bool stays(std::size_t window) const {
    return window > 0 && (is_unservable(window) || window <= first_servable);
  }
  /// Whether the window can be served by no fewer of what the level is of, or by nothing at all.
  bool can_keep(std::size_t window, std::size_t level) const;
};

/// All servers, without their weights, out of their candidates of all windows; `stopped`: some
/// limits are the closed form's for want of time.
struct DayServers {
  std::vector<DayServer> all;  // by name
  bool stopped = false;
};
DayServers day_servers(const System& system, const Profile& profile, const Execution& execution);

/// The windows, and what a change between two of them is.
struct DayTimes {
  std::vector<double> start_s, hours;
  DayOptions options;

  std::size_t count() const { return hours.size(); }
  /// Whether what came with the window `from` must still be up in `to`.
  bool held(std::size_t from, std::size_t to) const {
    return start_s[to] - start_s[from] < options.min_up_s - 1e-6;
  }
  /// late: what starts does so in the window, not before it.
  double change_cost(const DayLevel& from, const DayLevel& to, std::size_t window, bool late) const;
  double startup_h(std::size_t window) const;  // that fits into the window before
  double late_h(std::size_t window) const;     // that a late start takes of the window
};

int starts(const DayLevel& from, const DayLevel& to);
int stops(const DayLevel& from, const DayLevel& to);

/// Amounts and prices by window and type, row-major.
struct DayTable {
  std::size_t types = 0;
  std::vector<double> cells;
  double& at(std::size_t window, std::size_t type) { return cells[window * types + type]; }
  double at(std::size_t window, std::size_t type) const { return cells[window * types + type]; }
};

/// What a path pays for capacity, and what it may take of it; null: nothing, and as much as it
/// needs.
struct DayTerms {
  const DayTable* prices = nullptr;
  const DayTable* left = nullptr;
  bool may_be_unserved = false;
};

/// A level, and whether what starts with it starts late: there is no room for it in the window
/// before, and until it is up the server counts as unserved.
struct WindowChoice {
  std::uint32_t level = 0;
  bool late = false;
};
using DayPath = std::vector<WindowChoice>;  // by window

/// Adds `times` what the path takes, by window and type; a replica that starts takes its units in
/// the window before too, unless it is late.
void add_use(const DayServer& server, const DayTimes& times, const DayPath& path, double factor,
             DayTable& to);
/// In cents, with the weight of unserved windows that something would serve.
double cost_of(const DayServer& server, const DayTimes& times, const DayPath& path);
double cost_in(const DayServer& server, const DayTimes& times, std::size_t window,
               std::size_t level);

struct DayMove {
  WindowChoice to;
  double cost = 0;
};
/// Where the server may go from `level` when the window begins; since: the window with which its
/// last replicas came, or kLongUp.
inline constexpr std::size_t kLongUp = SIZE_MAX;
std::vector<DayMove> moves_of(const DayServer& server, const DayTimes& times, std::size_t window,
                              std::size_t level, std::size_t since, bool may_be_unserved);

/// A path of the least cost at the terms, by dynamic programming over the windows; the state is a
/// level and since when it is up. Where `left` is given, nothing all day must fit.
DayPath best_path(const DayServer& server, const DayTimes& times, const DayTerms& terms);

}  // namespace berth::fleet
