#include "berth/fleet/simulate/served_trace.h"

#include <gtest/gtest.h>

#include <limits>

namespace berth::fleet {
namespace {

std::vector<std::pair<double, int>> by_time(std::span<const ReplicaChange> changes) {
  std::vector<std::pair<double, int>> all;
  for (const auto& each : changes) all.emplace_back(each.at_ms, each.replicas);
  return all;
}
using Changes = std::vector<std::pair<double, int>>;

TEST(ServedTrace, MoreServeWhenTheyAreUpAndFewerAtOnce) {
  const std::vector<WantedReplicas> wanted{{60, 90, 5}, {200, 230, 2}};
  EXPECT_EQ(by_time(changes_of(3, wanted)), (Changes{{90'000, 5}, {200'000, 2}}));
}

TEST(ServedTrace, WhatIsGivenUpBeforeItIsUpNeverServes) {
  const std::vector<WantedReplicas> wanted{{60, 180, 9}, {100, 220, 4}};
  EXPECT_EQ(by_time(changes_of(3, wanted)), (Changes{{180'000, 4}}));
  const std::vector<WantedReplicas> back{{60, 180, 9}, {100, 220, 3}};
  EXPECT_TRUE(changes_of(3, back).empty());
}

/// A request every ten seconds for 20 minutes; `late` are those from the 40th on, ten of them.
TEST(ServedTrace, TellsTheWorstFiveMinutesWithTheirRate) {
  std::vector<Request> trace;
  std::vector<double> ttft_ms;
  Outcome outcome;
  for (int i = 0; i < 120; ++i) {
    trace.push_back({i * 10'000.0, 10, 10});
    const bool late = i >= 40 && i < 50;
    ttft_ms.push_back(i == 50 ? std::numeric_limits<double>::quiet_NaN() : late ? 700 : 100);
    if (i != 50) outcome.ttft_ms.push_back(ttft_ms.back());
  }
  Target target{.ttft_ms = 50};
  target.percentiles.ttft_ms[2] = 600;  // goes before the mean
  const Attainment found = attainment_of(outcome, trace, ttft_ms, target);
  EXPECT_EQ(found.requests, 120);
  EXPECT_EQ(found.lost, 1);
  EXPECT_EQ(found.within_ms, 600);
  EXPECT_DOUBLE_EQ(found.within, 109.0 / 120);  // the lost one is not within
  EXPECT_DOUBLE_EQ(found.worst_within, 19.0 / 30);
  EXPECT_EQ(found.worst_at_s, 300);
  EXPECT_DOUBLE_EQ(found.worst_per_min, 6);
  EXPECT_EQ(found.percentiles.ttft_ms[3], 700);
  EXPECT_EQ(attainment_of(outcome, trace, ttft_ms, {}).within_ms, 0);
}

}  // namespace
}  // namespace berth::fleet
