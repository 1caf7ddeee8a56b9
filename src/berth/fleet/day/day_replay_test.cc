#include "berth/fleet/day/day_replay.h"

#include <gtest/gtest.h>

#include <set>

#include "berth/fleet/simulate/simulation.h"
#include "berth/testing/day.h"

namespace berth::fleet {
namespace {

using testing::small_system;

constexpr double kMinute_s = 60;

/// A request each `gap_s`, with one token of prompt and `out` of answer, until the end of
/// `minutes`.
std::vector<Request> steady(double gap_s, int minutes, int out = 1) {
  std::vector<Request> trace;
  for (int i = 0; i * gap_s < minutes * kMinute_s; ++i) trace.push_back({i * gap_s * 1000, 1, out});
  return trace;
}

/// A day of windows of a minute of the one server, whose three plans all have these allocations.
Day day_of(const std::vector<DayAllocation>& allocations, int batch) {
  Day day;
  day.servers = {"s0"};
  day.batches = {{{"large", batch}, {"small", batch}}};
  for (std::size_t w = 0; w < allocations.size(); ++w) {
    day.windows.push_back({kMinute_s * static_cast<double>(w), kMinute_s, {}});
    for (DayPlan* plan : {&day.static_plan, &day.greedy, &day.best})
      plan->allocations.push_back({allocations[w]});
  }
  return day;
}

Attainment replayed(const System& system, const Day& day, double startup_s,
                    const std::vector<Request>& trace) {
  const auto found = replay_day(system, day, {.startup_s = startup_s}, trace, {{"s0", 1}}, 1);
  EXPECT_TRUE(found && found->size() == 1);
  return found->front().plans[2];
}

TEST(DayReplay, EachAcceleratorServesInItsTime) {
  const System system = small_system(1);
  const auto trace = steady(1, 3);
  // Alone on a replica a prompt takes α + β + γ, of which 8 ms or 18 are α.
  const auto ttft_ms = [&](const char* accelerator) {
    const Performance& p = system.models.at("m").accelerators.at(accelerator);
    return p.alpha_ms + p.beta_ms + p.gamma_ms;
  };
  const Day day = day_of({{"large", 1}, {"small", 1}, {"small", 1}}, 4);
  const Attainment found = replayed(system, day, 0, trace);
  EXPECT_EQ(found.requests, 180);
  EXPECT_EQ(found.lost, 0);
  EXPECT_NEAR(found.mean_ttft_ms, (ttft_ms("large") + 2 * ttft_ms("small")) / 3, 1e-9);
  EXPECT_NEAR(found.percentiles.ttft_ms[2], ttft_ms("small"), 1e-9);
}

TEST(DayReplay, WhatArrivesWhereNothingIsUpIsLost) {
  const System system = small_system(1);
  const auto trace = steady(1, 3);
  const Day idle = day_of({{"large", 1}, {"", 0}, {"large", 1}}, 4);
  EXPECT_EQ(replayed(system, idle, 0, trace).lost, 60);
  // Up in time: it starts in the window before. Late: it starts with its own.
  EXPECT_EQ(replayed(system, idle, 30, trace).lost, 60);
  Day late = idle;
  late.best.allocations[2][0].late = true;
  EXPECT_EQ(replayed(system, late, 30, trace).lost, 90);
  // The minute before is too short for 80 seconds, and for 200 so is the rest of the day.
  EXPECT_EQ(replayed(system, idle, 80, trace).lost, 80);
  EXPECT_EQ(replayed(system, idle, 200, trace).lost, 120);
}

TEST(DayReplay, MoreReplicasServeWhenTheyAreUp) {
  System system = small_system(1);
  system.servers["s0"].max_queue = 0;
  // Of two requests at a time a replica with one place loses one; each is served for 16 s.
  const Day day = day_of({{"large", 1}, {"large", 1000}, {"large", 1000}, {"large", 1}}, 1);
  std::vector<Request> pairs;
  for (const Request& request : steady(60, 4, 2'000)) {
    pairs.push_back(request);
    pairs.push_back({request.arrival + 1, request.in_tokens, request.out_tokens});
  }
  EXPECT_EQ(replayed(system, day, 0, pairs).lost, 2);
  EXPECT_EQ(replayed(system, day, 90, pairs).lost, 3);  // up half a minute into its window
}

TEST(DayReplay, AStaticPlanIsWhatTheSimulatorMakesOfIt) {
  System system = small_system(2);
  const auto trace = steady(0.05, 10, 200);
  const std::map<std::string, double> parts{{"s0", 0.25}, {"s1", 0.75}};
  const auto profile = profile_of(trace, 120, parts);
  ASSERT_TRUE(profile);
  const auto day = plan_day(system, *profile, {});
  ASSERT_TRUE(day);
  const auto found = replay_day(system, *day, {}, trace, parts, 3);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2);
  const auto requests = divide(trace, std::vector{0.25, 0.75}, 3);
  for (std::size_t s = 0; s < 2; ++s) {
    const DayAllocation& has = day->static_plan.allocations[0][s];
    Deployment deployment = deployment_of(system.models.at("m").accelerators.at(has.accelerator),
                                          day->batches[s].at(has.accelerator), 64);
    deployment.replicas = has.replicas;
    deployment.routing = Routing::random;
    std::vector<double> ttft_ms;
    const Outcome outcome =
        simulate(deployment, requests[s], 1, {}, seed_of(3, Stream::routing), &ttft_ms);
    const Attainment& plan = (*found)[s].plans[0];
    EXPECT_EQ(plan.requests, std::ssize(requests[s]));
    EXPECT_EQ(plan.percentiles.ttft_ms[2], quantiles(outcome.ttft_ms, kPercentiles)[2]);
    EXPECT_EQ(plan.mean_itl_ms, outcome.itl.mean_ms());
    EXPECT_EQ(plan.within_ms, 1000);
  }
  double cost = 0;
  for (const double each : day->best.server_costs) cost += each;
  EXPECT_NEAR(cost, day->best.cost, 1e-9);
}

TEST(DayReplay, AReplicaServesWhatAnyWindowAsksOfItAtOnce) {
  const System system = small_system(1);
  Profile profile{{0, 600, {}}, {600, 600, {}}, {1200, 600, {}}};
  std::map<std::string, int> greatest;
  std::set<int> all;
  for (std::size_t w = 0; w < profile.size(); ++w) {
    System one = system;
    Load& load = one.servers["s0"].current.load;
    load.in_tokens = w == 0 ? 500 : 2'000;
    if (w == 2) load.arrivals_per_min = 4 * testing::kUnit;  // more replicas, of fewer requests
    profile[w].loads["s0"] = load;
    const Candidates made = candidates(one, one.options.model);
    for (const Candidate& c : made.of(0)) {
      int& most = greatest[made.accelerators[c.accelerator]];
      most = std::max(most, c.batch);
      all.insert(c.batch);
    }
  }
  ASSERT_GT(all.size(), greatest.size());  // windows do differ
  const auto day = plan_day(system, profile, {});
  ASSERT_TRUE(day);
  EXPECT_EQ(day->batches[0], greatest);
}

TEST(DayReplay, ServersWithoutRequestsAreLeftOut) {
  const System system = small_system(2);
  const auto trace = steady(1, 2);
  Day day = day_of({{"large", 1}, {"large", 1}}, 4);
  const auto none = replay_day(system, day, {}, trace, {{"s0", 0}}, 1);
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
  const auto unknown = replay_day(system, day, {}, trace, {{"s1", 1}}, 1);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::not_found);
  day = day_of({{"large", kMostSimulatedReplicas + 1}, {"large", 1}}, 4);
  const auto too_many = replay_day(system, day, {}, trace, {{"s0", 1}}, 1);
  ASSERT_FALSE(too_many);
  EXPECT_NE(too_many.error().message.find("s0: replicas"), std::string::npos);
}

}  // namespace
}  // namespace berth::fleet
