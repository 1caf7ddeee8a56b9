// Days against all days that there are, counted out with the rules written down once more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "berth/base/rng.h"
#include "berth/fleet/day/day.h"
#include "berth/testing/day.h"
#include "berth/testing/generated_fleet.h"

namespace berth::fleet {
namespace {

using testing::kTooLong;
using testing::kUnit;
using testing::small_system;

/// Of each server's windows nothing serves `unservable` in 16.
Profile random_profile(const System& system, Rng& rng, int windows, std::uint64_t unservable) {
  Profile profile;
  double start = 0;
  for (int w = 0; w < windows; ++w) {
    DayWindow window{start, rng.below(2) == 0 ? 600.0 : 1200.0, {}};
    for (const auto& [name, server] : system.servers) {
      Load load = server.current.load;
      load.arrivals_per_min = kUnit * static_cast<double>(rng.below(4));
      if (rng.below(16) < unservable) load.in_tokens = kTooLong;
      window.loads[name] = load;
    }
    start += window.length_s;
    profile.push_back(std::move(window));
  }
  return profile;
}

DayOptions random_options(Rng& rng) {
  return {.change_cents = rng.below(2) == 0 ? 0 : 30 * rng.uniform(),
          .change_s = rng.below(2) == 0 ? 0 : 600 * rng.uniform(),
          .startup_s = rng.below(2) == 0 ? 0.0 : 120.0,
          .min_up_s = 600.0 * static_cast<double>(rng.below(5)),
          .hysteresis = rng.below(2) == 0 ? 0 : 0.2};
}

/// A path of one server: what it costs, what it leaves unserved, what it uses (by window and type).
struct Counted {
  std::vector<DayAllocation> path;
  double cost = 0, unserved_h = 0;
  std::vector<std::map<std::string, int>> use;
};

/// All paths of one server that the rules allow.
class AllPaths {
 public:
  AllPaths(const System& system, const std::string& server, const Profile& profile,
           const DayOptions& options, bool may_be_unserved)
      : system_(system), profile_(profile), o_(options), may_be_unserved_(may_be_unserved) {
    std::set<std::pair<std::string, int>> levels{{"", 0}};
    for (const DayWindow& window : profile) {
      System one = system;
      one.servers = {{server, system.servers.at(server)}};
      one.servers[server].current.load = window.loads.at(server);
      const Candidates made = candidates(one, one.options.model);
      needs_.emplace_back();
      idle_.push_back(window.loads.at(server).arrivals_per_min == 0);
      unservable_.push_back(made.of(0).empty());
      for (const Candidate& c : made.of(0)) {
        if (c.accelerator == Candidate::kNothing) continue;
        needs_.back()[made.accelerators[c.accelerator]] = c.replicas;
        levels.insert({made.accelerators[c.accelerator], c.replicas});
      }
    }
    for (const auto& [accelerator, replicas] : levels) levels_.push_back({accelerator, replicas});
    visit();
  }
  std::vector<Counted> all;

 private:
  double price(const std::string& accelerator) const {
    return accelerator.empty() ? 0 : system_.accelerators.at(accelerator).cost;
  }
  bool serves(std::size_t w, const DayAllocation& a) const {
    if (idle_[w]) return true;
    const auto need = needs_[w].find(a.accelerator);
    return need != needs_[w].end() && a.replicas >= need->second;
  }

  void visit() {
    const std::size_t w = path_.size();
    if (w == profile_.size()) return all.push_back(count());
    for (DayAllocation level : levels_)
      for (const bool late : {false, true}) {
        level.serves = serves(w, level);
        level.late = late;
        if (!level.serves && !unservable_[w] && !(may_be_unserved_ && level.replicas == 0))
          continue;
        if (late && !(may_be_unserved_ && o_.startup_s > 0 && w > 0 && begun(w, level) > 0))
          continue;
        path_.push_back(level);
        if (is_allowed(w)) visit();
        path_.pop_back();
      }
  }

  int begun(std::size_t w, const DayAllocation& now) const {
    const DayAllocation& before = path_[w - 1];
    return now.accelerator == before.accelerator ? std::max(0, now.replicas - before.replicas)
                                                 : now.replicas;
  }

  /// Nothing of what came within the minimum time is given up, except for want of capacity.
  bool is_allowed(std::size_t w) const {
    const DayAllocation& now = path_[w];
    const bool stays = unservable_[w] || std::ranges::find(unservable_, false) >=
                                             unservable_.begin() + static_cast<std::ptrdiff_t>(w);
    if (w > 0 && stays)
      return now.accelerator == path_[w - 1].accelerator && now.replicas == path_[w - 1].replicas;
    if (w == 0 || !now.serves || path_[w - 1].replicas == 0) return true;
    const DayAllocation& before = path_[w - 1];
    const bool kept = now.accelerator == before.accelerator && now.replicas >= before.replicas;
    for (std::size_t j = w - 1; j > 0 && path_[j].replicas > 0 && !kept; --j) {
      const bool began = path_[j].accelerator != path_[j - 1].accelerator ||
                         path_[j].replicas > path_[j - 1].replicas;
      if (began) return profile_[w].start_s - profile_[j].start_s >= o_.min_up_s;
    }
    return true;
  }

  Counted count() const {
    Counted counted{path_, 0, 0, std::vector<std::map<std::string, int>>(path_.size())};
    for (std::size_t w = 0; w < path_.size(); ++w) {
      const DayAllocation& now = path_[w];
      const double hours = profile_[w].length_s / 3600;
      counted.cost += hours * now.replicas * price(now.accelerator);
      counted.unserved_h += now.serves ? 0 : hours;
      counted.use[w][now.accelerator] += now.replicas;
      if (w == 0) continue;
      const DayAllocation& before = path_[w - 1];
      const bool same = now.accelerator == before.accelerator;
      const int up = begun(w, now);
      const int down = same ? std::max(0, before.replicas - now.replicas) : before.replicas;
      counted.cost += (up + down) * o_.change_cents +
                      (now.late ? 0 : up * price(now.accelerator) * o_.startup_s / 3600);
      counted.unserved_h += now.serves && now.late ? o_.startup_s / 3600 : 0;
      counted.cost +=
          o_.change_s / 3600 * (up * price(now.accelerator) + down * price(before.accelerator));
      if (o_.startup_s > 0 && !now.late) counted.use[w - 1][now.accelerator] += up;
    }
    return counted;
  }

  const System& system_;
  const Profile& profile_;
  const DayOptions& o_;
  const bool may_be_unserved_;
  std::vector<std::map<std::string, int>> needs_;
  std::vector<bool> idle_, unservable_;
  std::vector<DayAllocation> levels_, path_;
};

/// What a plan says of one server, as the path that it is.
std::vector<DayAllocation> path_of(const DayPlan& plan, std::size_t server) {
  std::vector<DayAllocation> path;
  for (const auto& window : plan.allocations) path.push_back(window[server]);
  return path;
}

const Counted* find(const std::vector<Counted>& all, const std::vector<DayAllocation>& path) {
  const auto found = std::ranges::find(all, path, &Counted::path);
  return found == all.end() ? nullptr : &*found;
}

TEST(Day, IsTheCheapestOfAllWithoutLimits) {
  int cheaper = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    const System system = small_system(1);
    const Profile profile = random_profile(system, rng, 5, seed % 4);
    const DayOptions options = random_options(rng);
    const auto day = plan_day(system, profile, options);
    ASSERT_TRUE(day) << day.error().message;
    const AllPaths paths(system, "s0", profile, options, false);
    ASSERT_FALSE(paths.all.empty());
    const double least = std::ranges::min_element(paths.all, {}, &Counted::cost)->cost;
    EXPECT_NEAR(day->best.cost, least, 1e-6) << seed;
    EXPECT_NEAR(day->bound, least, 1e-6) << seed;
    EXPECT_EQ(day->gap, 0);
    for (const DayPlan* plan : {&day->best, &day->greedy, &day->static_plan}) {
      const Counted* counted = find(paths.all, path_of(*plan, 0));
      ASSERT_NE(counted, nullptr) << "against the rules: " << seed;
      EXPECT_NEAR(counted->cost, plan->cost, 1e-6);
      EXPECT_GE(plan->cost, least - 1e-6);
    }
    EXPECT_EQ(day->static_plan.changes, 0);
    cheaper += day->best.cost < std::min(day->greedy.cost, day->static_plan.cost) - 1 ? 1 : 0;
  }
  EXPECT_GT(cheaper, 10);
}

/// The fewest unserved hours, then the least cost, of two servers within the limits.
std::pair<double, double> least_of_two(const System& system, const std::vector<Counted>& a,
                                       const std::vector<Counted>& b) {
  std::pair best(HUGE_VAL, HUGE_VAL);
  for (const Counted& x : a)
    for (const Counted& y : b) {
      const std::pair cost(x.unserved_h + y.unserved_h, x.cost + y.cost);
      if (cost >= best) continue;
      bool fits = true;
      for (std::size_t w = 0; w < x.use.size() && fits; ++w)
        for (const auto& [type, capacity] : system.capacities) {
          const auto of = [&](const Counted& c) {
            const auto found = c.use[w].find(type);
            return found == c.use[w].end() ? 0 : found->second;
          };
          fits = fits && of(x) + of(y) <= capacity.count;
        }
      if (fits) best = cost;
    }
  return best;
}

TEST(Day, LiesBetweenBoundAndGreedyWithinLimits) {
  int optimal = 0, tight = 0, unserved = 0;
  constexpr int kCases = 40;
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    Rng rng(1000 + seed);
    System system = small_system(2);
    system.options.solver = Solver::optimal;
    system.capacities["large"] = {static_cast<std::int64_t>(1 + rng.below(2))};
    system.capacities["small"] = {static_cast<std::int64_t>(3 + rng.below(6))};
    const Profile profile = random_profile(system, rng, 4, seed % 3);
    DayOptions options = random_options(rng);
    const auto day = plan_day(system, profile, options);
    ASSERT_TRUE(day) << day.error().message;
    const AllPaths a(system, "s0", profile, options, true), b(system, "s1", profile, options, true);
    const auto [unserved_h, cost] = least_of_two(system, a.all, b.all);
    for (const DayPlan* plan : {&day->best, &day->greedy, &day->static_plan}) {
      const Counted *x = find(a.all, path_of(*plan, 0)), *y = find(b.all, path_of(*plan, 1));
      ASSERT_TRUE(x != nullptr && y != nullptr) << "against the rules: " << seed;
      EXPECT_LT(least_of_two(system, {*x}, {*y}).second, HUGE_VAL) << "beyond limits: " << seed;
      EXPECT_NEAR(x->cost + y->cost, plan->cost, 1e-6);
      EXPECT_GE(std::pair(plan->unserved_h + 1e-9, plan->cost + 1e-6), std::pair(unserved_h, cost));
    }
    EXPECT_LE(std::pair(day->best.unserved_h, day->best.cost),
              std::pair(day->greedy.unserved_h, day->greedy.cost + 1e-6));
    unserved += unserved_h > day->unservable_h ? 1 : 0;
    if (unserved_h <= day->unservable_h) {
      EXPECT_LE(day->bound, cost + 1e-6) << seed;
      tight += day->gap < 0.02 ? 1 : 0;
    }
    optimal += std::abs(day->best.cost - cost) < 1e-6 ? 1 : 0;
  }
  EXPECT_GT(unserved, 2);
  EXPECT_LT(unserved, kCases / 2);
  EXPECT_GE(optimal, kCases * 9 / 10);
  EXPECT_GE(tight, kCases * 4 / 10);
}

TEST(Day, ServesTheHighestPriorityWhereCapacityIsShort) {
  System system = small_system(2);
  system.options.solver = Solver::optimal;
  system.capacities["small"] = {6};
  system.classes["low"] = system.classes["c"];
  system.classes["low"].priority = 2;
  for (const char* low : {"s0", "s1"}) {
    for (auto& [name, server] : system.servers) server.service_class = name == low ? "low" : "c";
    Profile profile;
    for (int w = 0; w < 3; ++w) {
      DayWindow window{600.0 * w, 600, {}};
      for (const auto& [name, server] : system.servers) {
        window.loads[name] = server.current.load;
        window.loads[name].arrivals_per_min = w == 1 ? 3 * kUnit : 60;
      }
      profile.push_back(std::move(window));
    }
    const auto day = plan_day(system, profile, {.startup_s = 60});
    for (const DayPlan* plan : {&day->best, &day->greedy})
      for (std::size_t s = 0; s < 2; ++s)
        for (const DayAllocation& a : path_of(*plan, s))
          EXPECT_TRUE(a.serves || day->servers[s] == low);
    EXPECT_NEAR(day->best.unserved_h, 1.0 / 6, 1e-9) << low;
  }
}

TEST(Day, StartsLateWhereThereIsNoRoomBefore) {
  System system = small_system(2);
  system.options.solver = Solver::optimal;
  system.capacities["small"] = {5};
  const auto load = [&](double per_min) {
    Load made = system.servers.at("s0").current.load;
    made.arrivals_per_min = per_min;
    return made;
  };
  // s1 goes from 1 replica to 5 while s0 still has its 1.
  const Profile profile{{0, 600, {{"s0", load(60)}, {"s1", load(60)}}},
                        {600, 600, {{"s0", load(0)}, {"s1", load(3 * kUnit)}}}};
  const auto day = plan_day(system, profile, {.startup_s = 60});
  for (const DayPlan* plan : {&day->best, &day->greedy}) {
    EXPECT_EQ(plan->allocations[1][1], (DayAllocation{"small", 5, true, true}));
    EXPECT_EQ(plan->short_s, (std::vector<double>{0, 60}));
    EXPECT_NEAR(plan->unserved_h, 60 / 3600.0, 1e-9);
    EXPECT_NEAR(plan->cost, (2 + 5) * 100 / 6.0, 1e-6);
  }
  system.capacities["small"] = {6};
  EXPECT_EQ(plan_day(system, profile, {.startup_s = 60})->best.unserved_h, 0);
}

/// All that a day says, for comparison.
std::string in_full(const Day& day) {
  std::string text = fmt::format("{} {}", day.bound, day.gap);
  for (const DayPlan* plan : {&day.static_plan, &day.greedy, &day.best}) {
    text += fmt::format("\n{} {} {} {} {} {}", plan->cost, plan->starts, plan->stops, plan->changes,
                        plan->flaps, plan->unserved_h);
    for (const auto& window : plan->allocations)
      for (const DayAllocation& a : window) text += fmt::format(" {}{}", a.replicas, a.accelerator);
  }
  return text;
}

/// A generated fleet, a day of eight windows, hardly more of each type than its plan takes at the
/// peak.
std::pair<System, Profile> generated_day(std::uint64_t seed) {
  System system = testing::generated_fleet(seed, 30, 6);
  testing::limit_to(system, 1.02, candidates(system, QueueModel::calibrated));
  Profile profile;
  for (int w = 0; w < 8; ++w) {
    DayWindow window{1800.0 * w, 1800, {}};
    for (const auto& [name, server] : system.servers) {
      window.loads[name] = server.current.load;
      window.loads[name].arrivals_per_min *=
          0.4 + 0.6 * std::abs(std::sin(0.7 * w + static_cast<double>(seed)));
    }
    profile.push_back(std::move(window));
  }
  return {std::move(system), std::move(profile)};
}

TEST(Day, IsTheSameForAnyOrderOfExecution) {
  const auto [system, profile] = generated_day(3);
  const DayOptions options{.change_cents = 5, .startup_s = 120, .min_up_s = 3600};
  const auto day = plan_day(system, profile, options);
  ASSERT_TRUE(day);
  EXPECT_GT(day->best.changes, 0);
  EXPECT_EQ(day->best.unserved_h, 0);
  EXPECT_LE(day->best.cost, day->greedy.cost);
  EXPECT_LT(day->gap, 0.02);
  Execution backwards;
  backwards.parallel_for = [](std::size_t count, const std::function<void(std::size_t)>& body) {
    while (count-- > 0) body(count);
  };
  EXPECT_EQ(in_full(*plan_day(system, profile, options, backwards)), in_full(*day));
}

TEST(Day, DoesNotDependOnNames) {
  auto [system, profile] = generated_day(4);
  system.options.solver = Solver::unlimited;
  const auto renamed = [](const std::string& name) { return name.substr(name.size() - 1) + name; };
  System other = system;
  Profile other_profile = profile;
  other.servers.clear();
  for (const auto& [name, server] : system.servers) other.servers[renamed(name)] = server;
  for (std::size_t w = 0; w < profile.size(); ++w) {
    other_profile[w].loads.clear();
    for (const auto& [name, load] : profile[w].loads) other_profile[w].loads[renamed(name)] = load;
  }
  const auto a = plan_day(system, profile, {.startup_s = 60});
  const auto b = plan_day(other, other_profile, {.startup_s = 60});
  EXPECT_NEAR(a->best.cost, b->best.cost, 1e-6);
  EXPECT_NEAR(a->greedy.cost, b->greedy.cost, 1e-6);
  for (std::size_t s = 0; s < a->servers.size(); ++s) {
    const auto there = std::ranges::find(b->servers, renamed(a->servers[s])) - b->servers.begin();
    EXPECT_EQ(path_of(a->best, s), path_of(b->best, static_cast<std::size_t>(there)));
  }
}

/// One server whose need goes up and down with the letters: 'l'ow or 'h'igh, in windows of 10
/// minutes.
Day up_and_down(const std::string& letters, const DayOptions& options) {
  System system = small_system(1);
  system.models["m"].accelerators.erase("large");
  Profile profile;
  for (const char letter : letters) {
    Load load = system.servers.at("s0").current.load;
    load.arrivals_per_min = letter == 'h' ? 3 * kUnit : 10;
    profile.push_back({600 * static_cast<double>(profile.size()), 600, {{"s0", load}}});
  }
  return *plan_day(system, profile, options);
}

TEST(Day, FlapsOnlyWhereNothingHindersIt) {
  const Day free = up_and_down("lhlhl", {});
  EXPECT_EQ(free.best.flaps, 2);
  EXPECT_EQ(free.greedy.flaps, 2);
  EXPECT_EQ(free.static_plan.flaps, 0);
  const Day held = up_and_down("lhlhl", {.min_up_s = 1800});
  EXPECT_EQ(held.best.flaps + held.greedy.flaps, 0);
  EXPECT_LT(free.best.cost, held.best.cost);
  EXPECT_LT(held.best.cost, held.static_plan.cost);
  // Whoever looks ahead keeps for ten minutes what starting again costs more than.
  const Day dear = up_and_down("lhlhl", {.change_s = 360});
  EXPECT_EQ(dear.best.flaps, 0);
  EXPECT_EQ(dear.greedy.flaps, 2);
  EXPECT_LT(dear.best.cost, dear.greedy.cost);
  EXPECT_EQ(up_and_down("lhlhl", {.hysteresis = 0.99}).greedy.flaps, 0);
}

TEST(Day, StartUpThatDoesNotFitIsTold) {
  const Day day = up_and_down("lh", {.startup_s = 900});
  EXPECT_EQ(day.best.short_s, (std::vector<double>{0, 300}));
  EXPECT_EQ(up_and_down("lh", {.startup_s = 600}).best.short_s, (std::vector<double>{0, 0}));
}

TEST(Day, NeedsWindowsThatFollowOneAnother) {
  const System system = small_system(1);
  const auto message = [&](const Profile& profile, const DayOptions& options) {
    const auto day = plan_day(system, profile, options);
    return day ? "" : day.error().message;
  };
  const DayWindow first{0, 60, {}}, second{60, 60, {}};
  EXPECT_EQ(message({first, second}, {}), "");
  EXPECT_THAT(message({}, {}), ::testing::HasSubstr("got 0"));
  EXPECT_THAT(message({first, {70, 60, {}}}, {}), ::testing::HasSubstr("window 0: expected"));
  EXPECT_THAT(message({{0, 60, {{"x", {}}}}}, {}), ::testing::HasSubstr("no server 'x'"));
  EXPECT_THAT(message({first}, {.startup_s = -1}), ::testing::HasSubstr("start-up time"));
  Profile many;
  for (int w = 0; w < 200; ++w) many.push_back({60.0 * w, 60, {}});
  EXPECT_THAT(message(many, {.min_up_s = 7200}), ::testing::HasSubstr("at most 64 windows"));
}

}  // namespace
}  // namespace berth::fleet
