#include "berth/fleet/day/day_path.h"

#include <algorithm>
#include <cmath>

#include "berth/fleet/solver/knapsack.h"

namespace berth::fleet {
namespace {

constexpr double kSecondsPerHour = 3600;

/// The costs of all states of a window, and for each window from which state each was reached.
/// Slot 0 is free to go; slot k came with the k-th window back (1: this one).
class PathSearch {
 public:
  PathSearch(const DayServer& server, const DayTimes& times, const DayTerms& terms)
      : server_(server),
        times_(times),
        terms_(terms),
        count_(server.levels.size()),
        slots_(slots_of(times)) {
    from_.resize(times.count() * slots_ * count_);
  }

  DayPath run() {
    now_.assign(slots_ * count_, HUGE_VAL);
    for (std::size_t y = 0; y < count_; ++y) now_[y] = enter(0, y);
    for (window_ = 1; window_ < times_.count(); ++window_) {
      next_.assign(slots_ * count_, HUGE_VAL);
      entered_.clear();
      for (std::size_t y = 0; y < count_; ++y) entered_.push_back(enter(window_, y));
      step_free();
      for (std::size_t slot = 1; slot < slots_; ++slot) step_held(slot);
      now_.swap(next_);
    }
    return back_from(std::min_element(now_.begin(), now_.end()) - now_.begin());
  }

 private:
  static std::size_t slots_of(const DayTimes& times) {
    std::size_t most = 0;
    for (std::size_t from = 0, to = 0; from < times.count(); ++from) {
      while (to < times.count() && times.held(from, to)) ++to;
      most = std::max(most, to - std::min(to, from));
    }
    return most + 2;
  }

  /// What it costs to be at the level in the window; infinite where that may not be.
  double enter(std::size_t window, std::size_t y) const {
    const DayLevel& level = server_.levels[y];
    if (!server_.serves[window][y] && !server_.is_unservable(window) &&
        !(y == 0 && terms_.may_be_unserved))
      return HUGE_VAL;
    double cost = cost_in(server_, times_, window, y);
    if (y == 0) return cost;
    if (terms_.left && level.units() > terms_.left->at(window, level.type) + kFeasibilityTolerance)
      return HUGE_VAL;
    if (terms_.prices) cost += level.units() * terms_.prices->at(window, level.type);
    return cost;
  }

  struct Change {
    double cost = 0;
    bool late = false;
  };
  /// The cheaper of a start in time, where there is room for it, and of a late one.
  Change change(std::size_t x, std::size_t y, std::size_t window) const {
    const DayLevel &from = server_.levels[x], &to = server_.levels[y];
    Change in_time{times_.change_cost(from, to, window, false), false};
    const int begun = starts(from, to);
    if (begun == 0 || times_.options.startup_s == 0) return in_time;
    const double units = static_cast<double>(to.units_each * begun);
    const double beside = x != 0 && from.type == to.type ? from.units() : 0;
    if (terms_.left &&
        units + beside > terms_.left->at(window - 1, to.type) + kFeasibilityTolerance)
      in_time.cost = HUGE_VAL;
    if (terms_.prices) in_time.cost += units * terms_.prices->at(window - 1, to.type);
    if (!terms_.may_be_unserved) return in_time;
    const double late =
        times_.change_cost(from, to, window, true) + server_.weight * times_.late_h(window);
    return in_time.cost <= late ? in_time : Change{late, true};
  }

  bool is_held(std::size_t slot, std::size_t x) const {
    return slot > 0 && slot <= window_ && times_.held(window_ - slot, window_) && x != 0 &&
           server_.can_keep(window_, x);
  }

  /// A level that the server is free to leave, and the slot in which it is cheapest.
  struct Free {
    double cost = 0;
    std::size_t slot = 0, level = 0;
  };

  void step_free() {
    free_.clear();
    for (std::size_t x = 0; x < count_; ++x) {
      std::size_t slot = 0;
      for (std::size_t k = 1; k < slots_; ++k)
        if (!is_held(k, x) && now_[k * count_ + x] < now_[slot * count_ + x]) slot = k;
      const double cost = now_[slot * count_ + x];
      if (cost == HUGE_VAL) continue;
      free_.push_back({cost, slot, x});
      go(slot, x, x, 0);
    }
    if (server_.stays(window_)) return;
    std::ranges::stable_sort(free_, {}, &Free::cost);
    // Whoever stays is free to do what those who come may do, so who is dearer need not come.
    for (std::size_t y = 0; y < count_; ++y)
      for (const Free& from : free_) {
        if (from.cost + entered_[y] >= next_[y]) break;
        go(from.slot, from.level, y, 0);
      }
  }

  void step_held(std::size_t slot) {
    for (std::size_t x = 1; x < count_; ++x) {
      if (now_[slot * count_ + x] == HUGE_VAL || !is_held(slot, x)) continue;
      if (server_.stays(window_)) {
        go(slot, x, x, slot + 1);
        continue;
      }
      const std::uint32_t kept = server_.levels[x].accelerator;
      for (std::size_t y = x; y < count_ && server_.levels[y].accelerator == kept; ++y)
        go(slot, x, y, slot + 1);
      if (!server_.serves[window_][0]) go(slot, x, 0, 0);
    }
  }

  /// From a state to the level y, which is in `slot_if_kept` where nothing starts.
  void go(std::size_t slot, std::size_t x, std::size_t y, std::size_t slot_if_kept) {
    if (entered_[y] == HUGE_VAL) return;
    const double cost = now_[slot * count_ + x] + change(x, y, window_).cost + entered_[y];
    const bool starting = starts(server_.levels[x], server_.levels[y]) > 0;
    const std::size_t state = (starting ? 1 : slot_if_kept) * count_ + y;
    if (cost >= next_[state]) return;
    next_[state] = cost;
    from_[window_ * slots_ * count_ + state] = static_cast<std::uint32_t>(slot * count_ + x);
  }

  DayPath back_from(std::ptrdiff_t last) const {
    DayPath path(times_.count());
    auto state = static_cast<std::size_t>(last);
    for (std::size_t w = times_.count(); w-- > 0;) {
      const std::size_t level = state % count_;
      path[w].level = static_cast<std::uint32_t>(level);
      if (w == 0) break;
      state = from_[w * slots_ * count_ + state];
      path[w].late = change(state % count_, level, w).late;
    }
    return path;
  }

  const DayServer& server_;
  const DayTimes& times_;
  const DayTerms& terms_;
  const std::size_t count_, slots_;
  std::vector<Free> free_;
  std::size_t window_ = 0;                    // that is entered
  std::vector<double> now_, next_, entered_;  // by slot and level; by level
  std::vector<std::uint32_t> from_;           // by window, slot and level
};

}  // namespace

bool DayServer::can_keep(std::size_t window, std::size_t level) const {
  if (is_unservable(window)) return true;
  const std::uint32_t kept = levels[level].accelerator;
  for (std::size_t y = level; y < levels.size() && levels[y].accelerator == kept; ++y)
    if (serves[window][y]) return true;
  return false;
}

int starts(const DayLevel& from, const DayLevel& to) {
  return from.accelerator == to.accelerator ? std::max(0, to.replicas - from.replicas)
                                            : to.replicas;
}

int stops(const DayLevel& from, const DayLevel& to) {
  return starts(to, from);
}

double DayTimes::startup_h(std::size_t window) const {
  return std::min(options.startup_s / kSecondsPerHour, hours[window - 1]);
}

double DayTimes::late_h(std::size_t window) const {
  return std::min(options.startup_s / kSecondsPerHour, hours[window]);
}

double DayTimes::change_cost(const DayLevel& from, const DayLevel& to, std::size_t window,
                             bool late) const {
  const int up = starts(from, to), down = stops(from, to);
  const double change_h = options.change_s / kSecondsPerHour;
  return options.change_cents * (up + down) +
         change_h * (to.cost_each * up + from.cost_each * down) +
         (late ? 0 : startup_h(window) * to.cost_each * up);
}

void add_use(const DayServer& server, const DayTimes& times, const DayPath& path, double factor,
             DayTable& to) {
  for (std::size_t w = 0; w < path.size(); ++w) {
    const DayLevel& level = server.levels[path[w].level];
    if (path[w].level == 0) continue;
    to.at(w, level.type) += factor * level.units();
    if (w == 0 || times.options.startup_s == 0 || path[w].late) continue;
    const int begun = starts(server.levels[path[w - 1].level], level);
    to.at(w - 1, level.type) += factor * static_cast<double>(level.units_each * begun);
  }
}

double cost_in(const DayServer& server, const DayTimes& times, std::size_t window,
               std::size_t level) {
  // What nothing serves weighs the same in every day: it would only hide how far the bound is.
  const bool is_waived = server.serves[window][level] || server.is_unservable(window);
  const double unserved = is_waived ? 0 : server.weight;
  return times.hours[window] * (server.levels[level].cost() + unserved);
}

double cost_of(const DayServer& server, const DayTimes& times, const DayPath& path) {
  double cost = 0;
  for (std::size_t w = 0; w < path.size(); ++w) {
    const auto [level, late] = path[w];
    cost += cost_in(server, times, w, level);
    if (w == 0) continue;
    const DayLevel& before = server.levels[path[w - 1].level];
    cost += times.change_cost(before, server.levels[level], w, late) +
            (late ? server.weight * times.late_h(w) : 0);
  }
  return cost;
}

std::vector<DayMove> moves_of(const DayServer& server, const DayTimes& times, std::size_t window,
                              std::size_t level, std::size_t since, bool may_be_unserved) {
  if (server.stays(window))
    return {{{static_cast<std::uint32_t>(level), false}, cost_in(server, times, window, level)}};
  const std::size_t decisive = window == 0 ? server.first_servable : window;
  const auto& serves = server.serves[decisive];
  const DayLevel& from = server.levels[level];
  const bool held = window > 0 && since != kLongUp && level != 0 && times.held(since, window) &&
                    server.can_keep(window, level);
  std::vector<DayMove> moves;
  for (std::size_t y = 0; y < server.levels.size(); ++y) {
    const bool unserved = y == 0 && !serves[0] && may_be_unserved;
    if (!serves[y] && !unserved && !server.is_unservable(decisive)) continue;
    const DayLevel& to = server.levels[y];
    if (held && !unserved && (to.accelerator != from.accelerator || to.replicas < from.replicas))
      continue;
    const double cost = cost_in(server, times, decisive, y);
    const double change = window == 0 ? 0 : times.change_cost(from, to, window, false);
    moves.push_back({{static_cast<std::uint32_t>(y), false}, cost + change});
    if (window == 0 || !may_be_unserved || times.options.startup_s == 0 || starts(from, to) == 0)
      continue;
    const double late =
        times.change_cost(from, to, window, true) + server.weight * times.late_h(window);
    moves.push_back({{static_cast<std::uint32_t>(y), true}, cost + late});
  }
  if (window == 0 || times.options.hysteresis == 0) return moves;
  const auto stay =
      std::ranges::find_if(moves, [&](const DayMove& move) { return move.to.level == level; });
  if (stay == moves.end() || !serves[level]) return moves;
  const double enough = stay->cost * (1 - times.options.hysteresis);
  std::erase_if(moves, [&](const DayMove& move) {
    return move.to.level != level && serves[move.to.level] && move.cost >= enough;
  });
  return moves;
}

DayPath best_path(const DayServer& server, const DayTimes& times, const DayTerms& terms) {
  return PathSearch(server, times, terms).run();
}

}  // namespace berth::fleet
