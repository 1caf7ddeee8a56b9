// The optimum against CBC, stage by stage, on random fleets; and that nothing but the fleet
// decides.
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "berth/fleet/solver/solution.h"
#include "berth/testing/fleet.h"
#include "berth/testing/generated_fleet.h"
#include "paths.h"

namespace berth::fleet {
namespace {

/// A linear program as text: the servers' candidates that are wanted, capacities, and how many of
/// each priority may stay unserved.
class Program {
 public:
  Program(const System& system, const Candidates& made) : system_(system), made_(made) {}

  /// The least of the objective: unserved of `priority`, or (0) the value.
  double least(int priority, const std::map<int, int>& unserved) const {
    const std::string path = fmt::format("{}berth-{}", ::testing::TempDir(), getpid());
    std::ofstream(path + ".lp") << text(priority, unserved);
    const std::string command =
        fmt::format("cbc {0}.lp -ratio 0 -allow 0 -solve -solution {0}.sol > /dev/null 2>&1", path);
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::string line;
    std::ifstream solution(path + ".sol");
    std::getline(solution, line);
    EXPECT_TRUE(line.starts_with("Optimal")) << line;
    std::remove((path + ".lp").c_str());
    std::remove((path + ".sol").c_str());
    return std::stod(line.substr(line.rfind(' ') + 1));
  }

 private:
  std::string text(int priority, const std::map<int, int>& unserved) const {
    std::string objective, groups, binaries;
    std::map<std::string, std::string> used, counted;
    for (std::size_t s = 0; s < made_.servers.size(); ++s) {
      const std::string none = fmt::format("u{}", s);
      const int own = made_.priority[s];
      std::string group = none;
      binaries += " " + none;
      counted[fmt::format("{}", own)] += " + " + none;
      if (own == priority) objective += " + " + none;
      for (const Candidate& c : made_.of(s)) {
        const std::string name = fmt::format("x{}_{}", s, &c - made_.of(s).data());
        group += " + " + name;
        binaries += " " + name;
        if (priority == 0) objective += fmt::format(" {:+.9f} {}", c.value, name);
        if (c.accelerator != Candidate::kNothing)
          used[made_.types[made_.type_of[c.accelerator]]] +=
              fmt::format(" + {} {}", c.units(), name);
      }
      groups += fmt::format(" g{}: {} = 1\n", s, group);
    }
    for (const auto& [type, sum] : used) {
      const auto limit = system_.capacities.find(type);
      groups += fmt::format(" c{}:{} <= {}\n", type, sum,
                            limit == system_.capacities.end() ? 0 : limit->second.count);
    }
    for (const auto& [own, sum] : counted)
      if (const auto most = unserved.find(std::stoi(own)); most != unserved.end())
        groups += fmt::format(" p{}:{} <= {}\n", own, sum, most->second);
    return fmt::format(
        "Minimize\n obj: {} + 0 zero\nSubject To\n{}Bounds\n zero = 0\nBinaries\n{}\nEnd\n",
        objective, groups, binaries);
  }

  const System& system_;
  const Candidates& made_;
};

TEST(Optimal, IsWhatCbcFinds) {
  if (std::system("cbc -quit > /dev/null 2>&1") != 0) GTEST_SKIP() << "cbc is not installed";
  Rng rng(4);
  const char* wanted = std::getenv("BERTH_CBC_FLEETS");
  const int fleets = wanted == nullptr ? 20 : std::atoi(wanted);
  for (int i = 0; i < fleets; ++i) {
    const int servers = 5 + static_cast<int>(rng.below(56));
    System system = testing::generated_fleet(100 + static_cast<std::uint64_t>(i), servers,
                                             3 + static_cast<int>(rng.below(18)));
    const auto model = i % 2 == 0 ? QueueModel::reference : QueueModel::calibrated;
    const Candidates made = candidates(system, model);
    testing::limit_to(system, std::array{0.3, 0.6, 0.9, 1.5}[rng.below(4)], made);
    const Plan plan = solve(system, made, {.model = model});
    const Program program(system, made);
    std::map<int, int> unserved;
    for (const auto& [priority, found] : plan.proof.unserved) {
      const int least = static_cast<int>(std::lround(program.least(priority, unserved)));
      ASSERT_EQ(found, least) << "fleet " << i << " priority " << priority;
      ASSERT_EQ(plan.proof.unserved_bound.at(priority), least) << "fleet " << i;
      unserved[priority] = found;
    }
    const double value = program.least(0, unserved),
                 rounding = 1e-5 * std::max(1.0, std::abs(value));
    ASSERT_LE(plan.proof.bound, value + rounding) << "fleet " << i;
    ASSERT_NEAR(plan.proof.value, value, rounding) << "fleet " << i;
    ASSERT_LT(plan.proof.gap, 1e-8) << "fleet " << i;
  }
}

constexpr int kOfAKind = 701, kKinds = 3;  // many servers: bounds by further rows are added

/// Servers of a few kinds, each with candidates on two types of which there is little.
struct FewKinds {
  std::array<std::array<Candidate, 2>, kKinds> candidates;  // by kind and type
  std::array<int, kKinds> priorities{1, 1, 5};
  std::vector<std::int64_t> limits;
};

FewKinds few_kinds(Rng& rng) {
  FewKinds fleet;
  for (auto& kind : fleet.candidates)
    for (std::uint32_t type = 0; type < 2; ++type) {
      kind[type].accelerator = type;
      kind[type].replicas = 1;
      kind[type].units_per_replica = 2 + static_cast<int>(rng.below(9));
      kind[type].cost = 1 + static_cast<double>(rng.below(100));
      kind[type].value = kind[type].cost - 50;
    }
  for (int type = 0; type < 2; ++type) fleet.limits.push_back(20 + static_cast<int>(rng.below(60)));
  return fleet;
}

Candidates candidates_of(const FewKinds& fleet) {
  Candidates made;
  made.accelerators = made.types = {"A", "B"};
  made.type_of = {0, 1};
  made.begin = {0};
  for (std::size_t s = 0; s < kKinds * kOfAKind; ++s) {
    const std::size_t kind = s % kKinds;
    made.servers.push_back(fmt::format("server-{:05}", s));
    made.priority.push_back(fleet.priorities[kind]);
    for (const Candidate& c : fleet.candidates[kind]) made.all.push_back(c);
    made.begin.push_back(made.all.size());
  }
  return made;
}

/// The most served of priority 1, then of 5, then the least value, on one type: there are more
/// servers of each kind than fit, so that the types have nothing to do with each other.
std::array<double, 3> best_on(const FewKinds& fleet, std::size_t type) {
  std::array<double, 3> best{-1, 0, 0};
  const auto& kinds = fleet.candidates;
  std::array<int, kKinds> count{};
  const std::function<void(std::size_t, std::int64_t)> fill = [&](std::size_t kind,
                                                                  std::int64_t left) {
    if (kind == kKinds) {
      double value = 0;
      for (std::size_t k = 0; k < kKinds; ++k) value += count[k] * kinds[k][type].value;
      best = std::max(best, {1.0 * (count[0] + count[1]), 1.0 * count[2], -value});
      return;
    }
    const std::int64_t units = kinds[kind][type].units();
    for (count[kind] = 0; count[kind] * units <= left; ++count[kind])
      fill(kind + 1, left - count[kind] * units);
  };
  fill(0, fleet.limits[type]);
  return best;
}

TEST(Optimal, OfManyServersIsWhatCountingFinds) {
  Rng rng(7);
  for (int i = 0; i < 6; ++i) {
    const FewKinds fleet = few_kinds(rng);
    const Candidates made = candidates_of(fleet);
    const Optimum found = solve_optimal(made, fleet.limits, {});
    const auto a = best_on(fleet, 0), b = best_on(fleet, 1);
    const int first = 2 * kOfAKind - static_cast<int>(a[0] + b[0]);
    const int second = kOfAKind - static_cast<int>(a[1] + b[1]);
    std::map<int, int> unserved;
    double value = 0;
    for (std::size_t s = 0; s < made.servers.size(); ++s) {
      if (!found.solution[s].serves()) ++unserved[made.priority[s]];
      if (found.solution[s].serves()) value += found.solution[s].candidate->value;
    }
    ASSERT_EQ(unserved[1], first) << "fleet " << i;
    ASSERT_EQ(unserved[5], second) << "fleet " << i;
    ASSERT_EQ(found.unserved_bound.at(1), first) << "fleet " << i;
    ASSERT_EQ(found.unserved_bound.at(5), second) << "fleet " << i;
    ASSERT_LE(found.bound, -(a[2] + b[2]) + 1e-6) << "fleet " << i;
    ASSERT_NEAR(value, -(a[2] + b[2]), 1e-3 * std::abs(value)) << "fleet " << i;
  }
}

void parallel(std::size_t threads, std::size_t count,
              const std::function<void(std::size_t)>& body) {
  std::vector<std::jthread> all;
  for (std::size_t t = 0; t < threads; ++t)
    all.emplace_back([=] {
      for (std::size_t i = t; i < count; i += threads) body(i);
    });
}

TEST(Optimal, SameBytesWhateverTheOrderAndTheThreads) {
  System system = testing::generated_fleet(7, 30, 12);
  testing::limit_to(system, 0.6, candidates(system, QueueModel::calibrated));
  Json document = *parse_json(write_document(system));
  Rng rng(8);
  std::array<std::string, 2> first;  // without mixes, with them
  const char* wanted = std::getenv("BERTH_SHUFFLES");
  const int rounds = wanted == nullptr ? 100 : std::atoi(wanted);
  for (int round = 0; round < rounds; ++round) {
    for (const auto& [wrapper, list] : {std::pair{"acceleratorData", "accelerators"},
                                        {"capacityData", "count"},
                                        {"modelData", "models"},
                                        {"serviceClassData", "serviceClasses"},
                                        {"serverData", "servers"}}) {
      Json& entries = document[wrapper][list];
      for (std::size_t i = entries.size(); i > 1; --i)
        std::swap(entries[i - 1], entries[rng.below(i)]);
    }
    const System read = testing::read({{"fleet.json", dump(document)}});
    const std::size_t threads = std::array<std::size_t, 3>{1, 2, 4}[rng.below(3)];
    Execution execution;
    execution.iteration_limit = 1'000'000;
    execution.parallel_for = [&](std::size_t count, const std::function<void(std::size_t)>& body) {
      parallel(threads, count, body);
    };
    const Candidates made = candidates(read, QueueModel::calibrated, execution);
    const auto kind = static_cast<std::size_t>(round % 2);
    const Options options{.heterogeneous = kind == 1};
    const std::string text = plan_json(solve(read, made, options, execution), &made);
    if (first[kind].empty()) first[kind] = text;
    ASSERT_EQ(text, first[kind]) << "round " << round;
  }
  EXPECT_EQ(first[0].find("\"parts\""), std::string::npos);
  EXPECT_NE(first[1].find("\"parts\""), std::string::npos);
}

TEST(Optimal, AnIdleServerIsServedWhateverIsScarce) {
  System system = testing::generated_fleet(12, 40, 6);
  for (auto& [_, capacity] : system.capacities) capacity.count = 1;
  int i = 0;
  for (auto& [_, server] : system.servers) {
    if (++i % 2 == 0) continue;
    server.current.load = {};
    server.min_replicas = 0;
  }
  const Plan plan = berth::fleet::plan(system);
  i = 0;
  for (const auto& [name, assignment] : plan.servers) {
    if (++i % 2 == 0) continue;
    EXPECT_EQ(assignment.why, Why::served) << name << ": " << assignment.reason;
    EXPECT_EQ(assignment.allocation.replicas, 0);
  }
}

TEST(Optimal, GapIsSmallWhereLittleIsLeft) {
  System system = testing::generated_fleet(11, 1000, 20);
  const Candidates made = candidates(system, QueueModel::reference);
  testing::limit_to(system, 0.3, made);
  const Plan plan = solve(system, made, {.model = QueueModel::reference});
  EXPECT_LT(plan.proof.gap, 1e-3);
  EXPECT_EQ(plan.proof.unserved, plan.proof.unserved_bound);
}

TEST(Optimal, StopsWhenTold) {
  System system = testing::generated_fleet(9, 300, 20);
  const Candidates made = candidates(system, QueueModel::reference);
  testing::limit_to(system, 0.5, made);
  int asked = 0;
  Execution execution;
  execution.stop = [&] { return ++asked > 50; };
  const Plan plan = solve(system, made, {.model = QueueModel::reference}, execution);
  EXPECT_TRUE(plan.proof.stopped);
  EXPECT_LT(asked, 1000);
  for (const TypeTotal& total : plan.totals) EXPECT_LE(total.used, *total.limit);
  EXPECT_LE(plan.proof.bound, plan.proof.value);
}

TEST(Optimal, ShadowPriceIsOfThisWorld) {
  const System system = testing::read(
      {{"fleet.json", testing::text_of(tests::source_path("examples/fleet/fleet.json"))}});
  const Plan made = plan(system);
  for (const TypeTotal& total : made.totals)
    EXPECT_LT(total.shadow_price, 10 * made.cost) << total.type;
}

TEST(Greedy, BestEffortLeavesCandidatesAsTheyWere) {
  System system = testing::generated_fleet(10, 40, 10);
  const Candidates made = candidates(system, QueueModel::reference);
  testing::limit_to(system, 0.4, made);
  Options options{.model = QueueModel::reference,
                  .solver = Solver::greedy,
                  .saturation = Saturation::round_robin};
  const std::string before = plan_json(solve(system, made, options), &made);
  EXPECT_EQ(plan_json(solve(system, made, options), &made), before);
  int partly = 0;
  const Plan plan = solve(system, made, options);
  for (const auto& [name, server] : plan.servers) partly += server.why == Why::partly ? 1 : 0;
  EXPECT_GT(partly, 0);
  const Candidates again = candidates(system, QueueModel::reference);
  for (std::size_t i = 0; i < made.all.size(); ++i)
    ASSERT_EQ(made.all[i].replicas, again.all[i].replicas);
}

}  // namespace
}  // namespace berth::fleet
