// Plans with mixes of two accelerators: against brute force on small fleets, and cases by name.
#include <cstdlib>

#include "berth/testing/fleet.h"
#include "berth/testing/generated_fleet.h"

namespace berth::fleet {
namespace {

constexpr Options kMixed{.model = QueueModel::reference, .heterogeneous = true};

/// One server of gold (priority 1) for each rate, in requests a minute; accelerators by name with
/// their cost and how fast they are, each its own type, of which there are so many.
struct Kind {
  const char* name;
  double cost, alpha_ms;
  std::int64_t count;
};
System small_fleet(const std::vector<Kind>& kinds, const std::vector<double>& arrivals_per_min) {
  System system;
  for (const Kind& kind : kinds) {
    system.accelerators[kind.name] = {.type = kind.name, .power = {}, .cost = kind.cost};
    system.capacities[kind.name] = {kind.count};
    system.models["llama"].accelerators[kind.name] = {.max_batch = 16,
                                                      .at_tokens = 512,
                                                      .alpha_ms = kind.alpha_ms,
                                                      .beta_ms = 0.05,
                                                      .gamma_ms = 0.0005};
  }
  system.classes["gold"] = {1, {{"llama", {.itl_ms = 60, .ttft_ms = 2000}}}};
  for (const double arrivals : arrivals_per_min) {
    Server server;
    server.service_class = "gold";
    server.model = "llama";
    server.max_queue = 64;
    server.current.load = {arrivals, 0, 200, 200};
    system.servers[fmt::format("s{}", system.servers.size())] = server;
  }
  system.options = kMixed;
  return system;
}

/// The greatest rate of a replica of the first server on an accelerator, in requests a minute.
double greatest_per_min(const System& system, const std::string& accelerator) {
  const Candidates made = candidates(system, system.options.model);
  for (const Candidate& c : made.of(0))
    if (made.accelerators[c.accelerator] == accelerator) return 60 * c.rate_per_s;
  return 0;
}

/// What a server may get, by units of each type; every mix of two of its candidates that takes the
/// load, up to a replica more of each than would do alone.
struct Ways {
  std::vector<std::pair<std::vector<std::int64_t>, double>> all;  // units, value
};

Ways ways_of(const System& system, const Candidates& made, std::size_t s) {
  const Server& server = system.servers.at(made.servers[s]);
  Ways ways;
  const auto units_of = [&](const Candidate& c, int replicas, std::vector<std::int64_t>& units) {
    units[made.type_of[c.accelerator]] += std::int64_t{c.units_per_replica} * replicas;
  };
  const double wanted_per_s = server.current.load.arrivals_per_min / 60;
  for (const Candidate& a : made.of(s)) {
    std::vector<std::int64_t> units(made.types.size());
    if (a.accelerator != Candidate::kNothing) units_of(a, a.replicas, units);
    ways.all.emplace_back(units, a.value);
    for (const Candidate& b : made.of(s)) {
      if (&b <= &a || server.keep_accelerator) continue;
      for (int i = 1; i <= a.replicas + 1; ++i)
        for (int j = 1; j <= b.replicas + 1; ++j) {
          if (i * a.rate_per_s + j * b.rate_per_s < wanted_per_s || i + j < server.min_replicas)
            continue;
          Allocation to;
          for (const auto& [c, replicas] : {std::pair{&a, i}, {&b, j}}) {
            Allocation part;
            part.accelerator = made.accelerators[c->accelerator];
            part.replicas = replicas;
            part.cost = c->cost / c->replicas * replicas;
            to.cost += part.cost;
            to.replicas += replicas;
            to.parts.push_back(part);
          }
          std::vector<std::int64_t> both(made.types.size());
          units_of(a, i, both);
          units_of(b, j, both);
          ways.all.emplace_back(both, transition_value(server.current, to, made.model));
        }
    }
  }
  return ways;
}

/// Unserved by priority, then the value: lexicographically least over everything.
class BruteForce {
 public:
  using Score = std::pair<std::map<int, int>, double>;

  BruteForce(const System& system, const Candidates& made) : made_(made) {
    for (std::size_t s = 0; s < made.servers.size(); ++s) ways_.push_back(ways_of(system, made, s));
    for (const auto& type : made.types) left_.push_back(system.capacities.at(type).count);
    for (const int priority : made.priority) now_.first[priority] = 0;
    best_.second = HUGE_VAL;
    descend(0);
  }
  const Score& best() const { return best_; }

 private:
  void descend(std::size_t s) {
    if (s == ways_.size()) {
      const bool better = best_.first.empty() || now_.first < best_.first ||
                          (now_.first == best_.first && now_.second < best_.second);
      if (better) best_ = now_;
      return;
    }
    for (const auto& [units, value] : ways_[s].all) {
      bool fits = true;
      for (std::size_t type = 0; type < left_.size(); ++type)
        fits = (left_[type] -= units[type]) >= 0 && fits;
      now_.second += value;
      if (fits) descend(s + 1);
      now_.second -= value;
      for (std::size_t type = 0; type < left_.size(); ++type) left_[type] += units[type];
    }
    ++now_.first[made_.priority[s]];
    descend(s + 1);
    --now_.first[made_.priority[s]];
  }

  const Candidates& made_;
  std::vector<Ways> ways_;
  std::vector<std::int64_t> left_;
  Score now_, best_;
};

/// A fleet of up to four servers on three accelerators, some of one type, some servers with a
/// current allocation, of which there is little.
System random_fleet(Rng& rng) {
  System system = small_fleet({{"A", 10 + 40 * rng.uniform(), 8 + 20 * rng.uniform(), 0},
                               {"B", 10 + 40 * rng.uniform(), 8 + 20 * rng.uniform(), 0},
                               {"C", 10 + 40 * rng.uniform(), 8 + 20 * rng.uniform(), 0}},
                              std::vector<double>(1 + rng.below(4), 60));
  if (rng.below(3) == 0) {
    system.accelerators["C"].type = "B";
    system.accelerators["C"].multiplicity = 2;
    system.capacities.erase("C");
  }
  for (auto& [_, capacity] : system.capacities) capacity.count = static_cast<int>(rng.below(7));
  system.classes["bronze"] = {7, system.classes["gold"].targets};
  for (auto& [_, server] : system.servers) {
    if (rng.below(2) == 0) server.service_class = "bronze";
    server.min_replicas = static_cast<int>(rng.below(4));
    server.current.load.arrivals_per_min = 100 + 900 * rng.uniform();
    if (rng.below(8) == 0) server.current.load = {};
    if (rng.below(2) != 0) continue;
    server.current.accelerator = std::array{"A", "B", "C"}[rng.below(3)];
    server.current.replicas = 1 + static_cast<int>(rng.below(3));
    server.current.cost = server.current.replicas * 10;
    server.keep_accelerator = rng.below(4) == 0;
  }
  return system;
}

TEST(Mixed, IsWhatBruteForceFinds) {
  Rng rng(11);
  const char* wanted = std::getenv("BERTH_BRUTE_FLEETS");
  const int fleets = wanted == nullptr ? 300 : std::atoi(wanted);
  int mixed = 0, fewer_unserved = 0, cheaper = 0;
  for (int i = 0; i < fleets; ++i) {
    const System system = random_fleet(rng);
    Options options = kMixed;
    options.model = i % 2 == 0 ? QueueModel::reference : QueueModel::calibrated;
    const Candidates made = candidates(system, options.model);
    const Plan plan = solve(system, made, options);
    const auto [unserved, value] = BruteForce(system, made).best();
    for (const TypeTotal& total : plan.totals) ASSERT_LE(total.used, *total.limit) << "fleet " << i;
    ASSERT_EQ(plan.proof.unserved, unserved) << "fleet " << i;
    ASSERT_EQ(plan.proof.unserved_bound, unserved) << "fleet " << i;
    ASSERT_NEAR(plan.proof.value, value, 1e-6) << "fleet " << i;
    ASSERT_NEAR(plan.proof.bound, value, 1e-6) << "fleet " << i;
    for (const auto& [name, server] : plan.servers) mixed += !server.allocation.parts.empty();
    options.heterogeneous = false;
    const Plan alone = solve(system, made, options);
    ASSERT_LE(unserved, alone.proof.unserved) << "fleet " << i;
    fewer_unserved += unserved < alone.proof.unserved;
    cheaper += unserved == alone.proof.unserved && value < alone.proof.value - 1e-6;
  }
  std::printf("%d fleets: %d mixes; fewer unserved in %d, cheaper in %d\n", fleets, mixed,
              fewer_unserved, cheaper);
  EXPECT_GT(fewer_unserved, fleets / 50);
  EXPECT_GT(cheaper, fleets / 50);
}

TEST(Mixed, IsCheaperThanEitherAlone) {
  System system = small_fleet({{"large", 100, 8, 100}, {"small", 25, 40, 100}}, {60});
  const double large = greatest_per_min(system, "large"), small = greatest_per_min(system, "small");
  ASSERT_GT(large, 2 * small);
  system.accelerators["small"].cost = 101 * small / large;  // a little dearer for what it takes
  system.servers["s0"].current.load.arrivals_per_min = 2 * large + 0.9 * small;
  const Plan mixed = plan(system);
  const Allocation& a = mixed.servers.at("s0").allocation;
  EXPECT_EQ(in_words(a), "2 × large + 1 × small");
  EXPECT_NEAR(mixed.proof.value, mixed.proof.bound, 1e-9);
  system.options.heterogeneous = false;
  const Plan alone = plan(system);
  EXPECT_TRUE(alone.servers.at("s0").allocation.parts.empty());
  EXPECT_LT(mixed.cost, alone.cost);
  for (const Candidate& c : candidates(system, kMixed.model).all) EXPECT_LT(mixed.cost, c.cost);
  // The whole is made of the parts, and these of their part of the load.
  ASSERT_EQ(a.parts.size(), 2U);
  EXPECT_EQ(a.accelerator, "large");
  EXPECT_EQ(a.replicas, 3);
  EXPECT_NEAR(a.cost, a.parts[0].cost + a.parts[1].cost, 1e-9);
  EXPECT_NEAR(a.parts[0].load.arrivals_per_min / a.parts[1].load.arrivals_per_min,
              2 * large / small, 1e-9);
  EXPECT_NEAR(a.parts[0].load.arrivals_per_min + a.parts[1].load.arrivals_per_min,
              a.load.arrivals_per_min, 1e-9);
  double itl_ms = 0;
  for (const Allocation& part : a.parts) {
    EXPECT_LE(part.itl_ms, 60);
    EXPECT_LE(part.ttft_ms, 2000);
    itl_ms += part.itl_ms * part.load.arrivals_per_min / a.load.arrivals_per_min;
  }
  EXPECT_NEAR(a.itl_ms, itl_ms, 1e-9);
}

TEST(Mixed, ServesWhatNeitherAloneCan) {
  System system = small_fleet({{"large", 100, 8, 2}, {"small", 25, 40, 3}}, {60});
  system.servers["s0"].current.load.arrivals_per_min =
      2 * greatest_per_min(system, "large") + greatest_per_min(system, "small");
  const Plan mixed = plan(system);
  EXPECT_EQ(in_words(mixed.servers.at("s0").allocation), "2 × large + 1 × small");
  EXPECT_EQ(mixed.proof.unserved, (std::map<int, int>{{1, 0}}));
  EXPECT_EQ(mixed.totals[0].used, 2);
  EXPECT_EQ(mixed.totals[1].used, 1);
  EXPECT_NEAR(mixed.totals[0].cost, 200, 1e-9);
  system.options.heterogeneous = false;
  EXPECT_EQ(plan(system).proof.unserved, (std::map<int, int>{{1, 1}}));
  // Not where the server is to keep what it has.
  system.options.heterogeneous = true;
  system.servers["s0"].current.accelerator = "large";
  system.servers["s0"].keep_accelerator = true;
  EXPECT_EQ(plan(system).proof.unserved, (std::map<int, int>{{1, 1}}));
}

TEST(Mixed, AnEmptyFleetAndAnIdleOne) {
  System system;
  system.options = kMixed;
  EXPECT_EQ(plan(system).proof.value, 0);
  system = small_fleet({{"large", 100, 8, 1}, {"small", 25, 40, 2}}, {0});
  EXPECT_EQ(in_words(plan(system).servers.at("s0").allocation), "");
  system.servers["s0"].min_replicas = 3;  // of all
  const Allocation a = plan(system).servers.at("s0").allocation;
  EXPECT_EQ(in_words(a), "1 × large + 2 × small");
  EXPECT_NEAR(a.cost, 150, 1e-9);
}

TEST(Mixed, WithoutLimitsEachServerItsLeast) {
  System system = small_fleet({{"large", 100, 8, 0}, {"small", 25, 40, 0}}, {200, 500, 900});
  system.options.solver = Solver::unlimited;
  const Plan mixed = plan(system);
  EXPECT_NEAR(mixed.proof.bound, mixed.proof.value, 1e-9);
  EXPECT_FALSE(mixed.totals[0].limit.has_value());
  for (auto& [_, capacity] : system.capacities) capacity.count = 1000;
  system.options.solver = Solver::optimal;
  EXPECT_EQ(plan(system).proof.value, mixed.proof.value);
}

TEST(Mixed, StaysWhereItStands) {
  System system = small_fleet({{"large", 100, 8, 2}, {"small", 25, 40, 3}}, {60});
  system.servers["s0"].current.load.arrivals_per_min =
      2 * greatest_per_min(system, "large") + greatest_per_min(system, "small");
  Allocation mix = plan(system).servers.at("s0").allocation;
  ASSERT_EQ(mix.parts.size(), 2U);
  system.servers["s0"].current = mix;
  const System read = testing::read({{"w", write_document(system)}});
  EXPECT_EQ(read.servers.at("s0").current.parts.size(), 2U);
  EXPECT_EQ(write_document(read), write_document(system));
  EXPECT_EQ(plan(read).proof.value, 0);
  system.servers["s0"].keep_accelerator = true;
  EXPECT_EQ(in_words(plan(system).servers.at("s0").allocation), in_words(mix));
  // One accelerator in its place: 0.1 of what goes and of what comes.
  system.capacities["large"].count = 9;
  system.servers["s0"].keep_accelerator = false;
  system.options.heterogeneous = false;
  const Plan alone = plan(system);
  EXPECT_EQ(in_words(alone.servers.at("s0").allocation), "3 × large");
  EXPECT_NEAR(alone.proof.value, (300 - 225) + 0.1 * (100 + 25), 1e-9);
}

TEST(Mixed, OperationsOnOne) {
  System system = small_fleet({{"large", 100, 8, 2}, {"small", 25, 40, 3}}, {60});
  const double most = 2 * greatest_per_min(system, "large") + greatest_per_min(system, "small");
  system.servers["s0"].current.load.arrivals_per_min = most;
  const Allocation mix = plan(system).servers.at("s0").allocation;
  EXPECT_FALSE(*saturated(system, "s0", mix, 0.999 * most));
  EXPECT_TRUE(*saturated(system, "s0", mix, 1.001 * most));
  EXPECT_FALSE(*saturated(system, "s0", mix, 0));
  EXPECT_EQ(saturated(system, "nobody", mix, 1).error().kind, ErrorKind::not_found);
  EXPECT_EQ(scale(system, "s0", mix, mix.load).error().kind, ErrorKind::impossible);
  Allocation large = mix.parts[0];
  EXPECT_NEAR(transition_value(large, mix, QueueModel::reference), 25 + 2.5, 1e-9);
  EXPECT_NEAR(transition_value(mix, large, QueueModel::reference), -25 + 2.5, 1e-9);
  EXPECT_EQ(transition_value(mix, mix, QueueModel::reference), 0);
  EXPECT_NEAR(transition_value({}, mix, QueueModel::reference), 1.1 * 225, 1e-9);
  const Difference change = difference(large, mix);
  EXPECT_EQ(change.from, "large");
  EXPECT_EQ(change.to, "large + small");
  EXPECT_EQ(change.replicas, 1);
}

TEST(Mixed, StopsWhenTold) {
  System system = testing::generated_fleet(9, 300, 20);
  const Candidates made = candidates(system, QueueModel::reference);
  testing::limit_to(system, 0.5, made);
  int asked = 0;
  Execution execution;
  execution.stop = [&] { return ++asked > 50; };
  const Plan plan = solve(system, made, kMixed, execution);
  EXPECT_TRUE(plan.proof.stopped);
  EXPECT_LT(asked, 1000);
  for (const TypeTotal& total : plan.totals) EXPECT_LE(total.used, *total.limit);
  EXPECT_LE(plan.proof.bound, plan.proof.value);
  EXPECT_TRUE(std::isfinite(plan.proof.bound));
}

TEST(Mixed, EveryPartMeetsTheTargets) {
  for (const auto model : {QueueModel::reference, QueueModel::calibrated}) {
    System system = testing::generated_fleet(24, 300, 20);
    const Candidates made = candidates(system, model);
    testing::limit_to(system, 0.9, made);
    const Plan plan = solve(system, made, {.model = model, .heterogeneous = true});
    int parts = 0;
    for (const auto& [name, assignment] : plan.servers) {
      const Server& server = system.servers.at(name);
      const Target& target = system.classes.at(server.service_class).targets.at(server.model);
      for (const Allocation& part : assignment.allocation.parts) {
        if (part.load.arrivals_per_min == 0) continue;
        ++parts;
        EXPECT_LE(part.itl_ms, target.itl_ms * (1 + 1e-6)) << name << " " << part.accelerator;
        EXPECT_LE(part.ttft_ms, target.ttft_ms * (1 + 1e-6)) << name << " " << part.accelerator;
        EXPECT_LE(part.utilisation, 1) << name;
      }
    }
    EXPECT_GT(parts, 20);
  }
}

TEST(Mixed, GapIsSmallUnderTightCapacity) {
  for (const unsigned seed : {2U, 3U}) {
    System system = testing::generated_fleet(seed, 300, 20);
    const Candidates made = candidates(system, QueueModel::reference);
    testing::limit_to(system, 0.3, made);
    const Plan plan = solve(system, made, kMixed);
    EXPECT_LT(plan.proof.gap, 1e-3) << seed;
    EXPECT_EQ(plan.proof.unserved, plan.proof.unserved_bound) << seed;
  }
}

TEST(Mixed, NeverWorseThanWithout) {
  for (const auto& [seed, part] : {std::pair{21U, 0.3}, {22U, 0.6}, {23U, 1.5}}) {
    System system = testing::generated_fleet(seed, 200, 20);
    const Candidates made = candidates(system, QueueModel::reference);
    testing::limit_to(system, part, made);
    Options options = kMixed;
    const Plan mixed = solve(system, made, options);
    options.heterogeneous = false;
    const Plan alone = solve(system, made, options);
    EXPECT_LE(std::pair(mixed.proof.unserved, mixed.proof.value),
              std::pair(alone.proof.unserved, alone.proof.value))
        << seed;
    for (const auto& [priority, bound] : mixed.proof.unserved_bound)
      EXPECT_LE(bound, mixed.proof.unserved.at(priority)) << seed;
    for (const TypeTotal& total : mixed.totals) EXPECT_LE(total.used, *total.limit) << seed;
  }
}

}  // namespace
}  // namespace berth::fleet
