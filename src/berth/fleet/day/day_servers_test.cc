// What the servers of a day may have, what of it nothing serves, and what is asked to find out.
#include <gtest/gtest.h>

#include "berth/fleet/day/day.h"
#include "berth/testing/day.h"

namespace berth::fleet {
namespace {

using testing::kTooLong;
using testing::kUnit;
using testing::small_system;

TEST(DayServers, WhatNothingServesIsToldAndSavesNothing) {
  for (const Solver solver : {Solver::unlimited, Solver::optimal}) {
    System system = small_system(2);
    system.options.solver = solver;
    system.capacities["small"] = system.capacities["large"] = {10};
    system.servers["s1"].model = "unknown";
    Profile profile;
    for (std::size_t w = 0; w < 5; ++w) {
      profile.push_back({600.0 * static_cast<double>(w), 600, {}});
      profile[w].loads["s0"] = system.servers["s0"].current.load;
      profile[w].loads["s0"].arrivals_per_min = 2 * kUnit;
      if (w == 0 || w == 3) profile[w].loads["s0"].in_tokens = kTooLong;
    }
    const Day day = *plan_day(system, profile, {});
    for (const DayPlan* plan : {&day.best, &day.greedy, &day.static_plan}) {
      EXPECT_EQ(plan->cost, 5 * plan->costs[1]) << "the other windows are no cheaper";
      EXPECT_EQ(plan->changes, 0);
      EXPECT_GT(plan->allocations[3][0].replicas, 0);
      EXPECT_NEAR(plan->unserved_h, 7 / 6.0, 1e-9);
      for (std::size_t w = 0; w < 5; ++w) {
        EXPECT_EQ(plan->allocations[w][0].serves, w != 0 && w != 3);
        EXPECT_EQ(plan->allocations[w][1], (DayAllocation{"", 0, false, false}));
      }
    }
    EXPECT_NEAR(day.unservable_h, 7 / 6.0, 1e-9);
    ASSERT_EQ(day.unservable.size(), 7U);
    EXPECT_EQ(day.unservable[1].window, 3U);
    EXPECT_EQ(day.unservable[1].reason, "large, small: its memory is too small for one request");
    EXPECT_EQ(day.unservable[2].reason, "the model 'unknown' is not known");
    EXPECT_EQ(day.gap, 0);
  }
}

/// A day whose servers have targets for percentiles; of each window's load the lengths are `of`.
std::pair<System, Profile> day_of_percentiles(int servers,
                                              const std::function<double(int window)>& of) {
  System system = small_system(servers);
  system.classes["c"].targets["m"].percentiles.ttft_ms[2] = 900;
  Profile profile;
  for (int w = 0; w < 24; ++w) {
    profile.push_back({600.0 * w, 600, {}});
    for (const auto& [name, server] : system.servers) {
      Load& load = profile.back().loads[name] = server.current.load;
      load.arrivals_per_min += 100 * w;
      load.in_tokens = of(w);
    }
  }
  return {std::move(system), std::move(profile)};
}

TEST(DayServers, AsksTheSimulatorOnceForEqualQuestions) {
  const auto [system, profile] = day_of_percentiles(9, [](int) { return 500; });
  std::vector<RateQuestion> asked;
  Execution execution;
  execution.rate_limit = [&](const RateQuestion& question) {
    asked.push_back(question);
    return question.estimate_per_s;
  };
  ASSERT_TRUE(plan_day(system, profile, {}, execution));
  EXPECT_EQ(asked.size(), 2U) << "of each accelerator once";
}

TEST(DayServers, EndsSoonAfterItIsStopped) {
  auto [system, profile] = day_of_percentiles(8, [](int w) { return 500 + w; });
  system.options.solver = Solver::optimal;
  system.capacities["small"] = {60};
  system.capacities["large"] = {16};
  int asked = 0, stops = 0;
  Execution execution;
  execution.rate_limit = [&](const RateQuestion& question) {
    ++asked;
    return question.estimate_per_s;
  };
  const Day whole = *plan_day(system, profile, {}, execution);
  EXPECT_EQ(asked, 48);
  EXPECT_FALSE(whole.stopped);
  EXPECT_GT(whole.gap, 0) << "else there is nothing to stop";
  for (const int after : {0, 1, 4, 20, 60}) {
    asked = stops = 0;
    execution.stop = [&] { return stops++ >= after; };
    const Day day = *plan_day(system, profile, {}, execution);
    EXPECT_TRUE(day.stopped);
    EXPECT_LE(asked, 16 * after);
    EXPECT_LE(stops, after + 80) << "it goes on for as long as a greedy plan takes";
    EXPECT_EQ(day.best.unserved_h, 0) << "it is a day all the same";
    EXPECT_GE(day.best.cost, whole.best.cost - 1e-6);
    EXPECT_LE(day.bound, day.best.cost);
  }
}

}  // namespace
}  // namespace berth::fleet
