#include "berth/testing/fleet.h"

namespace berth::fleet {
namespace {

using testing::near;

constexpr const char* kFleets[] = {"f1", "f2", "f3", "f9"};
constexpr std::pair<const char*, Saturation> kPolicies[] = {
    {"None", Saturation::none},
    {"PriorityExhaustive", Saturation::priority_exhaustive},
    {"PriorityRoundRobin", Saturation::priority_round_robin},
    {"RoundRobin", Saturation::round_robin}};

/// The servers of the plan are those that are expected, with the same accelerators, replicas and
/// cost; and the same figures where all replicas of the candidate are given.
void expect_plan(const System& system, const Plan& plan, const Json& expected,
                 const std::string& label) {
  for (const auto& [name, server] : plan.servers) {
    const Allocation& a = server.allocation;
    const bool is_idle = server.why == Why::served && a.replicas == 0;
    if (!expected.contains(name)) {
      EXPECT_TRUE(is_idle || server.why == Why::capacity || server.why == Why::no_candidate)
          << label << name << " has " << a.replicas << " " << a.accelerator;
      continue;
    }
    const Json& e = expected[name];
    EXPECT_EQ(a.accelerator, e[0].get<std::string>()) << label << name;
    EXPECT_EQ(a.replicas, e[1].get<int>()) << label << name;
    EXPECT_TRUE(near(a.cost, e[2])) << label << name << " " << a.cost << " " << e[2];
    if (server.why != Why::served) continue;
    EXPECT_TRUE(near(a.itl_ms, e[3])) << label << name;
    EXPECT_TRUE(near(a.ttft_ms, e[4])) << label << name;
  }
  for (const auto& [name, e] : expected.items()) EXPECT_TRUE(system.servers.contains(name)) << name;
}

TEST(ReferencePlans, AreAsExpectedByEverySolver) {
  int compared = 0;
  for (const char* fleet : kFleets) {
    const System system = testing::fleet(fleet);
    const Json expected = testing::expected(fleet);
    const Candidates all = candidates(system, QueueModel::reference);
    Options options{.model = QueueModel::reference, .solver = Solver::unlimited};
    expect_plan(system, solve(system, all, options), expected["unlimited"],
                fmt::format("{} unlimited ", fleet));
    options.solver = Solver::greedy;
    for (const bool delayed : {false, true})
      for (const auto& [name, policy] : kPolicies) {
        const Json& plans = expected[delayed ? "greedy_delayed" : "greedy"];
        if (!plans.contains(name)) continue;
        options.delayed_best_effort = delayed;
        options.saturation = policy;
        ++compared;
        expect_plan(system, solve(system, all, options), plans[name],
                    fmt::format("{} greedy {}{} ", fleet, name, delayed ? " delayed" : ""));
      }
  }
  EXPECT_GE(compared, 24);
}

TEST(ReferencePlans, OptimumIsAsExpected) {
  for (const char* fleet : kFleets) {
    const System system = testing::fleet(fleet);
    const Json expected = testing::expected(fleet)["optimal"];
    const Plan plan =
        solve(system, candidates(system, QueueModel::reference), {.model = QueueModel::reference});
    for (const auto& [priority, count] : expected["unserved_by_priority"].items()) {
      EXPECT_EQ(plan.proof.unserved.at(std::stoi(priority)), count) << fleet << " " << priority;
      EXPECT_EQ(plan.proof.unserved_bound.at(std::stoi(priority)), count) << fleet << priority;
    }
    EXPECT_NEAR(plan.proof.value, expected["value"], 1e-3 * std::abs(double(expected["value"])))
        << fleet;
    EXPECT_LT(plan.proof.gap, 1e-9) << fleet;
  }
}

}  // namespace
}  // namespace berth::fleet
