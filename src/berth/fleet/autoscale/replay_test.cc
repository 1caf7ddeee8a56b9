#include "berth/fleet/autoscale/replay.h"

#include <gtest/gtest.h>

#include <cmath>

#include "berth/base/rng.h"

namespace berth::fleet {
namespace {

System one_server() {
  System system;
  system.accelerators["A"] = {"A", 1, 0, 0, {}, 360};
  system.capacities["A"].count = 1000;
  system.models["m"].accelerators["A"] = {.accelerators = 2,
                                          .max_batch = 8,
                                          .at_tokens = 1000,
                                          .alpha_ms = 20,
                                          .beta_ms = 0.1,
                                          .gamma_ms = 0.0005};
  system.classes["c"].priority = 1;
  system.classes["c"].targets["m"].percentiles.ttft_ms[2] = 600;
  Server& server = system.servers["s"];
  server.service_class = "c";
  server.model = "m";
  server.max_queue = 10'000;
  server.max_batch = 8;
  server.current.accelerator = "A";
  return system;
}

/// Two hours whose rate swings between 2 and 20 requests a second, once an hour.
std::vector<Request> wave() {
  Rng rng(7);
  std::vector<Request> trace;
  for (double s = 0; s < 7'200;) {
    const double rate = 11 - 9 * std::cos(s / 3'600 * 2 * std::acos(-1.0));
    s += -std::log(1 - rng.uniform()) / rate;
    trace.push_back({s * 1000, 100, 50});
  }
  return trace;
}

ReplayOptions options_of(double startup_s) {
  ReplayOptions options;
  options.autoscaler.startup_s = startup_s;
  return options;
}

TEST(Replay, FollowsAWaveForLessThanItsPeak) {
  const auto trace = wave();
  const auto found = replay(one_server(), "s", trace, options_of(120));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->attained.requests, std::ssize(trace));
  EXPECT_EQ(found->attained.lost, 0);
  EXPECT_EQ(found->flaps, 0);
  EXPECT_GT(found->attained.within, 0.97);
  EXPECT_LE(found->attained.worst_within, found->attained.within);
  EXPECT_LT(found->cents, 0.85 * found->static_cents);
  EXPECT_GT(found->starts, 5);
  // Two accelerators a replica at 360 cents an hour.
  EXPECT_NEAR(found->static_cents, found->static_replicas * 720 * found->length_s / 3'600, 1e-6);
}

TEST(Replay, LateReplicasServeLate) {
  const auto trace = wave();
  const auto soon = replay(one_server(), "s", trace, options_of(0));
  ReplayOptions late_options = options_of(900);
  const auto late = replay(one_server(), "s", trace, late_options);
  ASSERT_TRUE(soon && late);
  EXPECT_GT(soon->attained.within, late->attained.within);
  EXPECT_LT(late->attained.worst_within, soon->attained.worst_within);
}

TEST(Replay, CostsAreThoseOfTheDecisions) {
  const auto found = replay(one_server(), "s", wave(), options_of(60));
  ASSERT_TRUE(found);
  double cents = 0;
  const auto& d = found->decisions;
  for (std::size_t i = 0; i < d.size(); ++i) {
    const double until_s = i + 1 < d.size() ? d[i + 1].first : found->length_s;
    if (i == 0) cents += d[0].second.current * d[0].first / 3'600 * 720;
    cents += d[i].second.desired * (until_s - d[i].first) / 3'600 * 720;
  }
  EXPECT_NEAR(found->cents, cents, 1e-6);
}

TEST(Replay, ShortOrWrongTracesAreRefused) {
  const std::vector<Request> brief{{0, 10, 10}, {1'000, 10, 10}};
  EXPECT_FALSE(replay(one_server(), "s", brief, options_of(0)));
  EXPECT_FALSE(replay(one_server(), "other", wave(), options_of(0)));
  ReplayOptions options = options_of(0);
  options.window_s = 1e6;
  EXPECT_FALSE(replay(one_server(), "s", wave(), options));
  System little = one_server();
  little.capacities["A"].count = 6;  // three replicas
  const auto short_of = replay(little, "s", wave(), options_of(60));
  ASSERT_TRUE(short_of) << short_of.error().message;
  EXPECT_EQ(short_of->static_replicas, 3);
  for (const auto& [at_s, d] : short_of->decisions) EXPECT_LE(d.desired, 3);
  little.capacities["A"].count = 1;
  EXPECT_FALSE(replay(little, "s", wave(), options_of(60)));
  System none = one_server();
  none.classes["c"].targets["m"].ttft_ms = 1;
  const auto refused = replay(none, "s", wave(), options_of(0));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::impossible);
}

}  // namespace
}  // namespace berth::fleet
