// The three plans of a day. Without limits each server's cheapest path is the optimum. With limits
// the prices of capacity by window and type give a lower bound (a Lagrangian dual, ascended by
// subgradients), and paths at these prices, made to fit one after another and then bettered one at
// a time, give days to choose from.
#include "berth/fleet/day/day.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "berth/fleet/day/day_path.h"
#include "berth/fleet/model/system_view.h"
#include "berth/fleet/solver/knapsack.h"
#include "berth/fleet/solver/solution.h"

namespace berth::fleet {
namespace {

constexpr double kUnservedWeight = 1000;  // in the costs of the dearest level of all
constexpr double kPriorityWeight = 10;    // of a priority against the next lower one
constexpr int kMostPriorityWeights = 3;
constexpr double kFlapTime_s = 1800;  // where no minimum time up is set
constexpr int kAscents = 300, kAscentsBetweenRepairs = 10, kMostBetterings = 8;
constexpr double kFirstStep = 1.0, kLastStep = 1e-3;  // of the subgradient method
constexpr double kCloseEnough = 5e-4;                 // of the cost, where the ascent ends
constexpr double kStatesPerIteration = 10;  // that a path visits, for one iteration of the limit
constexpr std::int64_t kChoiceIterations = 4'000'000;
constexpr std::size_t kServersBetweenStops = 8;

using Paths = std::vector<DayPath>;  // by server

class DayPlanner {
 public:
  DayPlanner(const System& system, Profile profile, const DayOptions& options,
             const Execution& execution)
      : system_(system), execution_(execution) {
    day_.windows = std::move(profile);
    times_.options = options;
    for (const DayWindow& window : day_.windows) {
      times_.start_s.push_back(window.start_s);
      times_.hours.push_back(window.length_s / 3600);
    }
    for (const auto& [name, server] : system.servers) day_.servers.push_back(name);
    is_limited_ = system.options.solver != Solver::unlimited;
    make_servers();
  }

  Day plan() {
    const Paths of_all = static_paths(), greedy = greedy_paths();
    best_ = greedy;
    best_cost_ = cost_of_all(greedy);
    auto alone = paths_at({.may_be_unserved = is_limited_});
    if (alone) day_.bound = cost_of_all(*alone);
    if (alone && (!is_limited_ || fits_all(*alone))) {
      best_ = std::move(*alone);
      best_cost_ = day_.bound;
    } else {
      offer(greedy);
      offer(of_all);
      if (alone) ascend();
    }
    BERTH_ASSERT(day_.bound <= best_cost_ + 1e-6 * std::max(1.0, best_cost_));
    day_.bound = std::min(day_.bound, best_cost_);  // rounding
    day_.gap = best_cost_ > 0 ? (best_cost_ - day_.bound) / best_cost_ : 0;
    if (day_.gap < 1e-9) day_.gap = 0;
    day_.static_plan = plan_of(of_all);
    day_.greedy = plan_of(greedy);
    day_.best = plan_of(best_);
    return std::move(day_);
  }

 private:
  void make_servers() {
    DayServers made = day_servers(system_, day_.windows, execution_);
    servers_ = std::move(made.all);
    day_.stopped = made.stopped;
    Candidates none = candidates(without_servers(), system_.options.model);
    accelerators_ = std::move(none.accelerators);
    types_ = none.types.size();
    for (const std::int64_t limit : limits_of(system_, none))
      limits_.push_back(static_cast<double>(limit));
    weigh();
    for (const DayServer& server : servers_) {
      auto& batches = day_.batches.emplace_back();
      for (const DayLevel& level : server.levels)
        if (level.accelerator != Candidate::kNothing) {
          int& most = batches[accelerators_[level.accelerator]];
          most = std::max(most, level.batch);
        }
      const auto levels = static_cast<double>(server.levels.size());
      work_of_paths_ += levels * levels * static_cast<double>(times_.count());
    }
    for (std::size_t s = 0; s < servers_.size(); ++s)
      for (std::size_t w = 0; w < times_.count(); ++w)
        if (servers_[s].is_unservable(w)) {
          day_.unservable.push_back({w, s, servers_[s].unservable[w]});
          day_.unservable_h += times_.hours[w];
        }
  }

  System without_servers() const {
    System none;
    none.accelerators = system_.accelerators;
    return none;
  }

  void weigh() {
    double dearest = 1;
    std::set<int> priorities;
    for (std::size_t s = 0; s < servers_.size(); ++s) {
      for (const DayLevel& level : servers_[s].levels) dearest = std::max(dearest, level.cost());
      priorities.insert(priority_of(s));
    }
    for (std::size_t s = 0; s < servers_.size(); ++s) {
      const auto lower =
          static_cast<int>(std::distance(priorities.upper_bound(priority_of(s)), priorities.end()));
      servers_[s].weight = kUnservedWeight * dearest *
                           std::pow(kPriorityWeight, std::min(kMostPriorityWeights, lower));
      by_priority_.push_back(s);
    }
    std::ranges::stable_sort(by_priority_, std::greater{},
                             [&](std::size_t s) { return servers_[s].weight; });
  }
  int priority_of(std::size_t s) const {
    return fleet::priority_of(system_, system_.servers.at(day_.servers[s]));
  }

  double cost_of_all(const Paths& paths) const {
    double cost = 0;
    for (std::size_t s = 0; s < paths.size(); ++s)
      cost += fleet::cost_of(servers_[s], times_, paths[s]);
    return cost;
  }

  DayTable use_of(const Paths& paths) const {
    DayTable use{types_, std::vector<double>(times_.count() * types_)};
    for (std::size_t s = 0; s < paths.size(); ++s) add_use(servers_[s], times_, paths[s], 1, use);
    return use;
  }
  bool fits_all(const Paths& paths) const {
    const DayTable use = use_of(paths);
    for (std::size_t i = 0; i < use.cells.size(); ++i)
      if (use.cells[i] > limits_[i % types_] + kFeasibilityTolerance) return false;
    return true;
  }
  DayTable limits_by_window() const {
    DayTable left{types_, {}};
    for (std::size_t w = 0; w < times_.count(); ++w)
      left.cells.insert(left.cells.end(), limits_.begin(), limits_.end());
    return left;
  }

  // ---- The day in one plan, and window after window ----

  /// For each server the cheapest level that serves all windows which anything serves.
  Paths static_paths() {
    std::vector<std::vector<DayMove>> moves;
    for (const DayServer& server : servers_) {
      std::vector<DayMove> of;
      for (std::uint32_t y = 0; y < server.levels.size(); ++y) {
        double cost = 0;
        bool serves = true;
        for (std::size_t w = 0; w < times_.count(); ++w) {
          serves = serves && (server.serves[w][y] || server.is_unservable(w));
          cost += cost_in(server, times_, w, y);
        }
        if (serves || (y == 0 && is_limited_)) of.push_back({{y, false}, cost});
      }
      // No accelerator does in all windows: there is no such plan, and the server has nothing.
      if (of.empty()) of.push_back({{}, 0});
      moves.push_back(std::move(of));
    }
    const std::vector<std::uint32_t> from(servers_.size(), 0);
    Paths paths;
    for (const WindowChoice choice : choose(moves, from, 0, limits_by_window()))
      paths.push_back(DayPath(times_.count(), choice));
    return paths;
  }

  Paths greedy_paths() {
    Paths paths(servers_.size());
    std::vector<std::uint32_t> now(servers_.size(), 0);
    std::vector<std::size_t> since(servers_.size(), kLongUp);
    for (std::size_t w = 0; w < times_.count(); ++w) {
      std::vector<std::vector<DayMove>> moves;
      for (std::size_t s = 0; s < servers_.size(); ++s)
        moves.push_back(moves_of(servers_[s], times_, w, now[s], since[s], is_limited_));
      DayTable left = limits_by_window();
      for (std::size_t s = 0; s < servers_.size(); ++s)
        add_use(servers_[s], times_, paths[s], -1, left);
      const auto chosen = choose(moves, now, w, left);
      for (std::size_t s = 0; s < servers_.size(); ++s) {
        const auto& levels = servers_[s].levels;
        if (w > 0 && starts(levels[now[s]], levels[chosen[s].level]) > 0) since[s] = w;
        now[s] = chosen[s].level;
        paths[s].push_back(chosen[s]);
      }
    }
    return paths;
  }

  /// For each server one of its moves into the window, within what is left, at the least cost.
  std::vector<WindowChoice> choose(const std::vector<std::vector<DayMove>>& moves,
                                   const std::vector<std::uint32_t>& from, std::size_t window,
                                   const DayTable& left) {
    Knapsack knapsack;
    Chosen cheapest, start;
    for (std::size_t type = 0; type < types_; ++type) knapsack.add_row(left.at(window, type));
    for (std::size_t type = 0; type < types_ && window > 0; ++type)
      knapsack.add_row(left.at(window - 1, type));
    for (std::size_t s = 0; s < servers_.size(); ++s) {
      const auto& of = moves[s];
      const auto first = static_cast<std::uint32_t>(knapsack.options.size());
      for (const DayMove& move : of) add_option(knapsack, s, move, from[s], window);
      knapsack.end_group();
      const auto least = std::ranges::min_element(of, {}, &DayMove::cost) - of.begin();
      cheapest.push_back(first + static_cast<std::uint32_t>(least));
      const auto at = [&](std::uint32_t level) {
        return std::ranges::find_if(of, [&](const DayMove& m) { return m.to.level == level; });
      };
      auto safe = at(0);
      if (safe == of.end()) safe = at(from[s]);
      start.push_back(first +
                      static_cast<std::uint32_t>(safe == of.end() ? least : safe - of.begin()));
    }
    const bool fits = std::ranges::all_of(left_of(knapsack, cheapest), [](double unused) {
      return unused >= -kFeasibilityTolerance;
    });
    if (is_limited_ && !fits) {
      serve_one_by_one(knapsack, start);
      Budget budget{kChoiceIterations, execution_.stop ? &execution_.stop : nullptr, false};
      cheapest = is_stopped() ? start : fleet::solve(knapsack, start, budget).chosen;
      day_.stopped |= budget.stopped;
    }
    std::vector<WindowChoice> choices;
    for (const std::uint32_t option : cheapest) {
      const std::uint32_t tag = knapsack.options[option].tag;
      choices.push_back({tag / 2, tag % 2 == 1});
    }
    return choices;
  }

  /// Gives each server, the highest priority first, the cheapest of its options for which the
  /// others' leave room.
  void serve_one_by_one(const Knapsack& knapsack, Chosen& chosen) const {
    std::vector<double> left = left_of(knapsack, chosen);
    const auto take = [&](const Option& option, double factor) {
      for (const Use& use : knapsack.uses_of(option)) left[use.row] -= factor * use.amount;
    };
    const auto fits = [&](const Option& option) {
      return std::ranges::all_of(knapsack.uses_of(option), [&](const Use& use) {
        return use.amount <= left[use.row] + kFeasibilityTolerance;
      });
    };
    for (const std::size_t s : by_priority_) {
      take(knapsack.options[chosen[s]], -1);
      for (auto i = knapsack.begin[s]; i < knapsack.begin[s + 1]; ++i)
        if (knapsack.options[i].cost < knapsack.options[chosen[s]].cost &&
            fits(knapsack.options[i]))
          chosen[s] = static_cast<std::uint32_t>(i);
      take(knapsack.options[chosen[s]], 1);
    }
  }

  void add_option(Knapsack& knapsack, std::size_t s, const DayMove& move, std::uint32_t from,
                  std::size_t window) const {
    const DayLevel& level = servers_[s].levels[move.to.level];
    std::vector<Use> uses;
    if (move.to.level > 0) uses.push_back({static_cast<std::uint32_t>(level.type), level.units()});
    const int begun = window == 0 ? 0 : starts(servers_[s].levels[from], level);
    if (move.to.level > 0 && begun > 0 && times_.options.startup_s > 0 && !move.to.late)
      uses.push_back({static_cast<std::uint32_t>(types_ + level.type),
                      static_cast<double>(level.units_each * begun)});
    knapsack.add(move.cost, uses, 2 * move.to.level + (move.to.late ? 1 : 0));
  }

  // ---- The whole day ----

  /// nullopt: stopped on the way.
  std::optional<Paths> paths_at(const DayTerms& terms) {
    Paths paths(servers_.size());
    for (std::size_t first = 0; first < paths.size(); first += kServersBetweenStops) {
      if (first > 0 && is_stopped()) return std::nullopt;
      for_each(
          execution_, std::min(kServersBetweenStops, paths.size() - first),
          [&](std::size_t i) { paths[first + i] = best_path(servers_[first + i], times_, terms); });
    }
    return paths;
  }

  /// Takes the paths, which fit, if they cost less than what there is.
  void offer(std::optional<Paths> offered) {
    if (!offered) return;
    Paths& paths = *offered;
    better(paths);
    const double cost = cost_of_all(paths);
    if (cost >= best_cost_) return;
    best_cost_ = cost;
    best_ = std::move(paths);
  }

  /// Gives one server after another its cheapest path in what the others leave.
  void better(Paths& paths) {
    DayTable left = limits_by_window();
    for (std::size_t s = 0; s < paths.size(); ++s) add_use(servers_[s], times_, paths[s], -1, left);
    const DayTerms terms{.left = &left, .may_be_unserved = true};
    bool any = true;
    for (int round = 0; round < kMostBetterings && std::exchange(any, false) && spend(); ++round)
      for (std::size_t s = 0; s < paths.size() && !is_stopped(); ++s) {
        const double before = fleet::cost_of(servers_[s], times_, paths[s]);
        add_use(servers_[s], times_, paths[s], 1, left);
        DayPath path = best_path(servers_[s], times_, terms);
        if (fleet::cost_of(servers_[s], times_, path) < before - tolerance_of(before)) {
          paths[s] = std::move(path);
          any = true;
        }
        add_use(servers_[s], times_, paths[s], -1, left);
      }
  }

  /// The same servers one after another, the highest priority first, each at the prices in what is
  /// left. nullopt: stopped on the way.
  std::optional<Paths> repaired(const DayTable& prices) {
    DayTable left = limits_by_window();
    const DayTerms terms{.prices = &prices, .left = &left, .may_be_unserved = true};
    Paths paths(servers_.size());
    for (const std::size_t s : by_priority_) {
      if (is_stopped()) return std::nullopt;
      paths[s] = best_path(servers_[s], times_, terms);
      add_use(servers_[s], times_, paths[s], -1, left);
    }
    return paths;
  }

  void ascend() {
    DayTable prices{types_, std::vector<double>(times_.count() * types_)};
    DayTable best_prices = prices;
    double step = kFirstStep;
    int without_gain = 0;
    for (int i = 0; i < kAscents && step > kLastStep && spend(); ++i) {
      const auto paths = paths_at({.prices = &prices, .may_be_unserved = true});
      if (!paths) return;
      const DayTable use = use_of(*paths);
      double bound = cost_of_all(*paths), length = 0;
      std::vector<double> over(use.cells.size());
      for (std::size_t c = 0; c < over.size(); ++c) {
        over[c] = use.cells[c] - limits_[c % types_];
        bound += prices.cells[c] * over[c];
        if (over[c] < 0 && prices.cells[c] == 0) over[c] = 0;
        length += over[c] * over[c];
      }
      if (i == 0 || bound > day_.bound + tolerance_of(bound)) {
        day_.bound = std::max(bound, day_.bound), best_prices = prices, without_gain = 0;
      } else if (++without_gain % 10 == 0) {
        step /= 2, prices = best_prices;
        continue;
      }
      if (fits_all(*paths)) offer(*paths);
      if (i % kAscentsBetweenRepairs == 0) offer(repaired(prices));
      if (best_cost_ - day_.bound <= kCloseEnough * best_cost_ || length == 0) break;
      if (is_stopped()) return;
      const double along = step * (best_cost_ - bound) / length;
      for (std::size_t c = 0; c < over.size(); ++c)
        prices.cells[c] = std::max(0.0, prices.cells[c] + along * over[c]);
    }
    offer(repaired(best_prices));
  }

  bool is_stopped() {
    day_.stopped = day_.stopped || (execution_.stop && execution_.stop());
    return day_.stopped;
  }

  /// Counts the work of one search for all servers' paths; false: all that may be done is.
  bool spend() {
    work_ += work_of_paths_;
    return work_ <= kStatesPerIteration * static_cast<double>(execution_.iteration_limit);
  }

  // ---- Telling ----

  DayPlan plan_of(const Paths& paths) const {
    DayPlan plan;
    plan.allocations.assign(times_.count(), std::vector<DayAllocation>(servers_.size()));
    plan.costs.assign(times_.count(), 0);
    plan.server_costs.assign(servers_.size(), 0);
    plan.short_s.assign(times_.count(), 0);
    for (std::size_t s = 0; s < servers_.size(); ++s) add(s, paths[s], plan);
    for (const double cost : plan.costs) plan.cost += cost;
    return plan;
  }

  void add(std::size_t s, const DayPath& path, DayPlan& plan) const {
    const DayServer& server = servers_[s];
    const double flap_s = times_.options.min_up_s > 0 ? times_.options.min_up_s : kFlapTime_s;
    std::size_t since = kLongUp;
    const auto pay = [&](std::size_t w, double cost) {
      plan.costs[w] += cost;
      plan.server_costs[s] += cost;
    };
    for (std::size_t w = 0; w < path.size(); ++w) {
      const auto [at, late] = path[w];
      const DayLevel& level = server.levels[at];
      DayAllocation& to = plan.allocations[w][s];
      if (at != 0) to = {accelerators_[level.accelerator], level.replicas};
      to.serves = server.serves[w][at];
      to.late = late;
      pay(w, times_.hours[w] * level.cost());
      plan.unserved_h += !to.serves ? times_.hours[w] : late ? times_.late_h(w) : 0;
      if (w == 0 || at == path[w - 1].level) continue;
      const DayLevel& before = server.levels[path[w - 1].level];
      const int up = starts(before, level), down = stops(before, level);
      pay(w, times_.change_cost(before, level, w, late));
      ++plan.changes;
      plan.starts += up;
      plan.stops += down;
      if (down > 0 && since != kLongUp && times_.start_s[w] - times_.start_s[since] < flap_s - 1e-6)
        ++plan.flaps;
      if (up == 0) continue;
      since = w;
      const double in_time_s = late ? 0 : 3600 * times_.startup_h(w);
      plan.short_s[w] = std::max(plan.short_s[w], times_.options.startup_s - in_time_s);
    }
  }

  const System& system_;
  const Execution& execution_;
  DayTimes times_;
  Day day_;
  std::vector<DayServer> servers_;
  std::vector<std::size_t> by_priority_;  // the servers, the highest first
  std::vector<std::string> accelerators_;
  std::vector<double> limits_;  // by type
  std::size_t types_ = 0;
  bool is_limited_ = true;
  Paths best_;
  double best_cost_ = 0;
  double work_ = 0, work_of_paths_ = 0;  // in states that are visited
};

}  // namespace

Result<Day> plan_day(const System& system, const Profile& profile, const DayOptions& options,
                     const Execution& execution) {
  BERTH_TRY(check_day(system, profile, options));
  Profile whole = profile;
  std::map<std::string, Load> now;
  for (const auto& [name, server] : system.servers) now[name] = server.current.load;
  for (DayWindow& window : whole) {
    for (const auto& [name, load] : window.loads) now[name] = load;
    window.loads = now;
  }
  return DayPlanner(system, std::move(whole), options, execution).plan();
}

}  // namespace berth::fleet
