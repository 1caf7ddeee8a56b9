#include "berth/fleet/autoscale/autoscaler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "berth/base/rng.h"

namespace berth::fleet {
namespace {

using Figures = std::map<std::string, Live>;

System system_of(std::initializer_list<const char*> servers, std::int64_t capacity = 100) {
  System system;
  system.accelerators["A"] = {"A", 1, 0, 0, {}, 100};
  system.capacities["A"].count = capacity;
  system.models["m"].accelerators["A"] = {.accelerators = 1,
                                          .max_batch = 16,
                                          .at_tokens = 1000,
                                          .alpha_ms = 10,
                                          .beta_ms = 0.1,
                                          .gamma_ms = 0.0005};
  system.classes["c"].priority = 1;
  system.classes["c"].targets["m"].ttft_ms = 200;
  for (const char* name : servers) {
    Server& server = system.servers[name];
    server.service_class = "c";
    server.model = "m";
    server.max_queue = 1000;
    server.max_batch = 16;
    server.current.accelerator = "A";
    server.current.replicas = 1;
    server.current.load = {.arrivals_per_min = 100, .in_tokens = 100, .out_tokens = 100};
  }
  return system;
}

Live live(double per_min, double replicas) {
  Live figures;
  figures.arrivals_per_min = figures.served_per_min = per_min;
  figures.in_tokens = figures.out_tokens = 100;
  figures.replicas = replicas;
  return figures;
}

AutoscalerOptions quick() {
  return {.interval_s = 10, .startup_s = 0, .hold_s = 100, .most_down = 0};
}

/// What a plan gives the only server for so many requests a minute.
int planned(System system, double per_min) {
  system.servers.begin()->second.current.load.arrivals_per_min = per_min;
  return plan(system).servers.begin()->second.allocation.replicas;
}

TEST(Autoscaler, GivesWhatThePlanGives) {
  const System system = system_of({"s"});
  Autoscaler loop(system, quick());
  for (const double per_min : {100.0, 2'000.0, 9'000.0, 30'000.0}) {
    Autoscaler fresh(system, quick());
    // The tokens are planned for in steps of 5 %, upwards: 100 are 103.5.
    System stepped = system;
    stepped.servers["s"].current.load.in_tokens = in_token_steps(100);
    stepped.servers["s"].current.load.out_tokens = in_token_steps(100);
    const auto decision = fresh.decide(0, {{"s", live(per_min, 1)}})[0];
    EXPECT_EQ(decision.needed, planned(stepped, per_min)) << per_min;
    EXPECT_EQ(decision.desired, decision.needed) << per_min << decision.reason;
  }
}

TEST(Autoscaler, MeasuredMeansStretchAHistogram) {
  System system = system_of({"s"});
  Load& load = system.servers["s"].current.load;
  const System plain = system;
  load.out_histogram = *LengthHistogram::of({{10, 9}, {910, 1}});
  ASSERT_EQ(load.out_histogram.mean(), load.out_tokens);
  Live longer = live(3'000, 1);
  longer.out_tokens = 200;
  const int needed = Autoscaler(system, quick()).decide(0, {{"s", longer}})[0].needed;
  load.in_tokens = in_token_steps(100);
  load.out_tokens = in_token_steps(200);
  EXPECT_EQ(needed, planned(system, 3'000));
  EXPECT_GT(needed, Autoscaler(plain, quick()).decide(0, {{"s", longer}})[0].needed);
}

TEST(Autoscaler, HoldsStillWithoutData) {
  Autoscaler loop(system_of({"s"}), quick());
  const auto unknown = loop.decide(0, {})[0];
  EXPECT_EQ(unknown.action, Action::hold);
  EXPECT_FALSE(unknown.is_known);  // what the document says is no reason to scale
  EXPECT_EQ(loop.decide(10, {{"s", live(9'000, 7)}})[0].current, 7);
  const int had = loop.decide(20, {{"s", live(9'000, 7)}})[0].desired;
  Live down;
  down.trouble = "connection refused";
  const auto held = loop.decide(30, {{"s", down}})[0];
  EXPECT_EQ(held.action, Action::hold);
  EXPECT_TRUE(held.is_known);
  EXPECT_EQ(held.desired, had);
  EXPECT_NE(held.reason.find("connection refused"), std::string::npos);
}

TEST(Autoscaler, BelievesAFirstCountOfReplicasTheSecondTime) {
  // Prometheus has scraped one of four so far: nobody must be told that one is enough.
  Autoscaler loop(system_of({"s"}), quick());
  const auto first = loop.decide(0, {{"s", live(200, 2)}})[0];
  EXPECT_FALSE(first.is_known);
  EXPECT_NE(first.reason.find("2 replicas are seen for the first time"), std::string::npos);
  EXPECT_FALSE(loop.decide(10, {{"s", live(200, 4)}})[0].is_known);
  const auto third = loop.decide(20, {{"s", live(200, 4)}})[0];
  EXPECT_TRUE(third.is_known);
  EXPECT_EQ(third.desired, 4);
}

TEST(Autoscaler, HoldsStillWhereDataAreAbsurd) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  Live negative = live(500, 1), endless = live(500, 1), longest = live(500, 1), none = live(500, 1);
  Live slow = live(500, 1), backwards = live(500, 1), served = live(500, 1), crowd = live(500, 1);
  slow.itl_ms = 1e305;
  backwards.itl_ms = -5;
  served.served_per_min = infinite;
  crowd.running = 1e200;
  Live idle = live(0, 1);
  idle.in_tokens = 1e300;
  negative.waiting = -3;
  endless.out_tokens = infinite;
  longest.in_tokens = 1e9;
  none.running = nan;
  for (const Live& figures : {live(-1, 1), live(nan, 1), live(infinite, 1), negative, endless,
                              longest, none, slow, backwards, served, crowd, idle, live(500, -1)}) {
    Autoscaler loop(system_of({"s"}), quick());
    loop.decide(0, {{"s", live(500, 1)}});
    const auto decision = loop.decide(10, {{"s", figures}})[0];
    EXPECT_EQ(decision.action, Action::hold) << decision.reason;
    EXPECT_EQ(decision.desired, 1);
    EXPECT_TRUE(decision.reason.starts_with("absurd")) << decision.reason;
  }
}

TEST(Autoscaler, BelievesAJumpTheSecondTime) {
  Autoscaler loop(system_of({"s"}), quick());
  loop.decide(0, {{"s", live(500, 1)}});
  const auto first = loop.decide(10, {{"s", live(50'000, 1)}})[0];
  EXPECT_EQ(first.action, Action::hold) << first.reason;
  EXPECT_EQ(loop.decide(20, {{"s", live(50'000, 1)}})[0].action, Action::more);
  // One absurd figure, and back: nothing moved.
  Autoscaler other(system_of({"s"}), quick());
  other.decide(0, {{"s", live(500, 1)}});
  other.decide(10, {{"s", live(50'000, 1)}});
  EXPECT_EQ(other.decide(20, {{"s", live(500, 1)}})[0].desired, 1);
}

TEST(Autoscaler, APauseIsNoReasonToDoubt) {
  AutoscalerOptions options = quick();
  options.startup_s = 60;
  Autoscaler loop(system_of({"s"}), options);
  loop.decide(0, {{"s", live(500, 1)}});
  loop.decide(10, {{"s", live(0, 1)}});
  EXPECT_NE(loop.decide(20, {{"s", live(600, 1)}})[0].action, Action::hold);
}

TEST(Autoscaler, AJumpIsAsGreatTheSecondTime) {
  Autoscaler loop(system_of({"s"}), quick());
  loop.decide(0, {{"s", live(500, 1)}});
  loop.decide(10, {{"s", live(50'000, 1)}});
  EXPECT_EQ(loop.decide(20, {{"s", live(3'000'000, 1)}})[0].action, Action::hold);  // another one
  Autoscaler late(system_of({"s"}), quick());
  late.decide(0, {{"s", live(500, 1)}});
  late.decide(10, {{"s", live(50'000, 1)}});
  EXPECT_EQ(late.decide(900, {{"s", live(50'000, 1)}})[0].action, Action::hold);  // long after
  Autoscaler alternating(system_of({"s"}), quick());
  Decision last;
  for (int i = 0; i < 6; ++i)
    last = alternating.decide(10 * i, {{"s", live(i % 2 == 0 ? 100 : 30'000, 1)}})[0];
  EXPECT_GT(last.desired, 1) << last.reason;
}

TEST(Autoscaler, AfterAnOutageNothingIsGivenUpAtOnce) {
  Autoscaler loop(system_of({"s"}), quick());
  const int had = loop.decide(0, {{"s", live(9'000, 1)}})[0].desired;
  ASSERT_GT(had, 4);
  for (double s = 10; s <= 300; s += 10) loop.decide(s, {});
  EXPECT_EQ(loop.decide(310, {{"s", live(100, had)}})[0].desired, had);
  EXPECT_EQ(loop.decide(400, {{"s", live(100, had)}})[0].desired, had);
  EXPECT_EQ(loop.decide(420, {{"s", live(100, had)}})[0].desired, 1);
}

TEST(Autoscaler, WhoIsSilentIsNotNeedless) {
  Autoscaler loop(system_of({"s"}), quick());
  const int had = loop.decide(0, {{"s", live(9'000, 1)}})[0].desired;
  ASSERT_GT(had, 4);
  for (double s = 10; s <= 50; s += 10) loop.decide(s, {{"s", live(9'000, had)}});
  Decision last;
  for (double s = 60; s <= 600; s += 10) last = loop.decide(s, {{"s", live(2'000, 2)}})[0];
  EXPECT_EQ(last.desired, had) << last.reason;
  EXPECT_NE(last.reason.find(fmt::format("2 of {} report", had)), std::string::npos);
}

TEST(Autoscaler, GivesUpWhatNobodyNeededForLong) {
  AutoscalerOptions options = quick();
  options.most_down = 2;
  Autoscaler loop(system_of({"s"}), options);
  const int peak = loop.decide(0, {{"s", live(9'000, 1)}})[0].desired;
  ASSERT_GT(peak, 4);
  for (double s = 10; s <= 100; s += 10)
    EXPECT_EQ(loop.decide(s, {{"s", live(200, peak)}})[0].desired, peak) << s;
  EXPECT_EQ(loop.decide(110, {{"s", live(200, peak)}})[0].desired, peak - 2);
  EXPECT_EQ(loop.decide(120, {{"s", live(200, peak)}})[0].desired, peak - 4);
}

TEST(Autoscaler, KeepsAfterAStartWhatItFindsFor) {
  Autoscaler loop(system_of({"s"}), quick());
  for (double s = 0; s < 100; s += 10)
    EXPECT_EQ(loop.decide(s, {{"s", live(200, 6)}})[0].desired, 6) << s;
}

TEST(Autoscaler, KeepsTheLimitsOfSteps) {
  AutoscalerOptions options = quick();
  options.most_up = 3;
  options.most_changes_per_h = 5;
  Autoscaler loop(system_of({"s"}), options);
  EXPECT_EQ(loop.decide(0, {{"s", live(30'000, 1)}})[0].desired, 4);
  EXPECT_EQ(loop.decide(10, {{"s", live(30'000, 1)}})[0].desired, 6);  // two of five are left
  const auto third = loop.decide(20, {{"s", live(30'000, 1)}})[0];
  EXPECT_EQ(third.desired, 6);
  EXPECT_NE(third.reason.find("5 changes an hour"), std::string::npos) << third.reason;
  EXPECT_EQ(loop.decide(3'601, {{"s", live(30'000, 1)}})[0].desired, 9);
}

TEST(Autoscaler, LooksAheadWhereTheLoadGrows) {
  AutoscalerOptions options = quick();
  options.startup_s = 60;
  Autoscaler loop(system_of({"s"}), options);
  Decision last;
  for (int i = 0; i <= 6; ++i) last = loop.decide(10 * i, {{"s", live(2'000 + 200 * i, 1)}})[0];
  EXPECT_NEAR(last.planned_per_min, 3'200 + 20 * 70, 1);  // 20 a minute more each second, for 70 s
  Autoscaler even(system_of({"s"}), options);
  for (int i = 0; i <= 6; ++i)
    last = even.decide(10 * i, {{"s", live(i % 2 == 0 ? 3'100 : 2'900, 1)}})[0];
  EXPECT_NEAR(last.planned_per_min, 3'100, 150);  // noise is no growth
}

TEST(Autoscaler, GivesTheCapacityByPriority) {
  System system = system_of({"first", "second"}, 8);
  system.classes["low"] = system.classes["c"];
  system.classes["low"].priority = 5;
  system.servers["second"].service_class = "low";
  Autoscaler loop(system, quick());
  const auto even = loop.decide(0, {{"first", live(500, 1)}, {"second", live(9'000, 1)}});
  EXPECT_EQ(even[0].desired + even[1].desired, 8);
  const auto grown = loop.decide(10, {{"first", live(3'500, 1)}, {"second", live(9'000, 1)}});
  EXPECT_EQ(grown[0].desired, grown[0].needed);
  EXPECT_EQ(grown[1].desired, 8 - grown[0].needed);
  EXPECT_EQ(grown[1].action, Action::fewer);
  EXPECT_NE(grown[1].reason.find("capacity"), std::string::npos) << grown[1].reason;
}

TEST(Autoscaler, CapacityLeavesEverybodyItsLeast) {
  System system = system_of({"first", "second"}, 4);
  system.classes["low"] = system.classes["c"];
  system.classes["low"].priority = 5;
  system.servers["second"].service_class = "low";
  Autoscaler loop(system, quick());
  const auto both = loop.decide(0, {{"first", live(30'000, 1)}, {"second", live(500, 1)}});
  EXPECT_EQ(both[0].desired, 3);
  EXPECT_EQ(both[1].desired, 1);
  EXPECT_TRUE(both[0].is_short);
}

TEST(Autoscaler, WhoHasNoneGetsItsLeastAgain) {
  System system = system_of({"s"});
  system.servers["s"].current.replicas = 0;
  system.servers["s"].min_replicas = 2;
  Autoscaler loop(system, quick());
  Live none;
  none.replicas = 0;
  const auto decision = loop.decide(0, {{"s", none}})[0];
  EXPECT_EQ(decision.desired, 2) << decision.reason;
}

TEST(Autoscaler, HeldServersTakeTheirUnits) {
  System system = system_of({"held", "other"}, 8);
  system.accelerators["B"] = {"A", 2, 0, 0, {}, 200};  // of two A
  system.models["m"].accelerators["B"] = system.models["m"].accelerators["A"];
  system.servers["held"].current.accelerator = "B";
  Autoscaler loop(system, quick());
  loop.decide(0, {{"held", live(3'000, 1)}, {"other", live(100, 1)}});
  const int held = loop.decide(10, {{"held", live(3'000, 1)}, {"other", live(100, 1)}})[0].desired;
  const auto after = loop.decide(20, {{"other", live(30'000, 1)}});
  EXPECT_EQ(after[0].action, Action::hold);
  EXPECT_LE(2 * held + after[1].desired, 8);
}

TEST(Autoscaler, WhatIsNotKnownIsNotMoved) {
  System system = system_of({"s"}, 2);
  system.servers["s"].current.replicas = 5;
  Autoscaler loop(system, quick());
  const auto decision = loop.decide(0, {})[0];
  EXPECT_EQ(decision.action, Action::hold);
  EXPECT_EQ(decision.desired, 5);
}

TEST(Autoscaler, ScalesOnlyWhatItCan) {
  EXPECT_TRUE(check_scalable(system_of({"s"})));
  System none = system_of({"s"}, 0);
  EXPECT_FALSE(check_scalable(none));
  none.options.solver = Solver::unlimited;
  EXPECT_TRUE(check_scalable(none));
  System mix = system_of({"s"});
  mix.servers["s"].current.parts.resize(2);
  EXPECT_FALSE(check_scalable(mix));
  System unknown = system_of({"s"});
  unknown.servers["s"].current.accelerator = "Z";
  EXPECT_FALSE(check_scalable(unknown));
}

TEST(Autoscaler, LearnsTheDriftOfBeta) {
  // What a replica with twice the beta and gamma would show: ITL = α + f·(X·o + λ·s·ITL).
  for (const double factor : {0.8, 1.0, 1.4, 3.0}) {
    Autoscaler loop(system_of({"s"}), quick());
    Decision last;
    for (int i = 0; i < 40; ++i) {
      Live figures = live(900, 1);
      const double o = 0.1 + 0.0005 * 155, s = 0.1 * 103.5 + 0.0005 * 103.5, x = 12;
      const double per_ms = 900 / 60'000.0;
      figures.running = x;
      figures.itl_ms = (10 + factor * x * o) / (1 - factor * per_ms * s);
      last = loop.decide(10 * i, {{"s", figures}})[0];
    }
    EXPECT_NEAR(last.drift, std::min(factor, 1.5), 0.06) << factor;  // no more than most_drift
  }
}

TEST(Autoscaler, LearnsHowManyAReplicaTakesAtOnce) {
  System system = system_of({"s"});
  Autoscaler loop(system, quick());
  Live full = live(900, 1);
  full.running = 2;  // of 16 that the document allows
  full.waiting = 50;
  AutoscalerOptions advice = quick();
  advice.applies = false;  // and nobody follows it
  Autoscaler told(system, advice);
  int first = 0;
  Decision last;
  for (int i = 0; i < 4; ++i) {
    last = told.decide(10 * i, {{"s", full}})[0];
    if (i == 0) first = last.needed;
  }
  EXPECT_GT(last.needed, first);
  EXPECT_NE(last.reason.find("2 concurrent"), std::string::npos) << last.reason;
  full.waiting = 0;
  full.running = 1;
  for (int i = 4; i < 20; ++i) last = told.decide(10 * i, {{"s", full}})[0];
  EXPECT_EQ(last.reason.find("at once"), std::string::npos) << last.reason;  // long ago
  // Replicas that have just begun run nothing yet: that tells of no limit.
  Autoscaler grown(system, quick());
  Live fresh = live(6'000, 1);
  grown.decide(0, {{"s", fresh}});
  const int has = grown.decide(10, {{"s", fresh}})[0].desired;
  ASSERT_GT(has, 3);
  fresh.replicas = has;
  fresh.running = has;
  fresh.waiting = 10 * has;
  EXPECT_EQ(grown.decide(20, {{"s", fresh}})[0].reason.find("at once"), std::string::npos);
  EXPECT_EQ(grown.decide(30, {{"s", fresh}})[0].reason.find("at once"), std::string::npos);
}

TEST(Autoscaler, NeverFlapsWhateverItIsTold) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    AutoscalerOptions options = quick();
    options.hold_s = 50 + static_cast<double>(rng.below(100));
    options.startup_s = static_cast<double>(rng.below(100));
    options.most_up = static_cast<int>(rng.below(3)) * 4;
    options.most_down = static_cast<int>(rng.below(4));
    Autoscaler loop(system_of({"s"}), options);
    double started_s = -1e9, per_min = 1'000;
    int has = 1, silent_until = 0;
    for (int i = 0; i < 200; ++i) {
      const double now_s = 10.0 * i;
      per_min = std::clamp(per_min * std::exp((rng.uniform() - 0.5) * 1.5), 10.0, 20'000.0);
      Figures figures{{"s", live(per_min, has)}};
      if (rng.below(100) == 0) silent_until = i + static_cast<int>(rng.below(40));
      if (i < silent_until || rng.below(10) == 0) figures.clear();
      if (rng.below(10) == 0 && !figures.empty()) figures["s"].waiting = rng.uniform() * 500;
      const auto d = loop.decide(now_s, figures)[0];
      EXPECT_GE(d.desired, 1);
      if (d.desired < has) {
        EXPECT_GE(now_s - started_s, options.hold_s) << seed << " at " << now_s;
      }
      if (d.desired > has) started_s = now_s;
      EXPECT_TRUE(options.most_up == 0 || d.desired - has <= options.most_up);
      EXPECT_TRUE(options.most_down == 0 || has - d.desired <= options.most_down);
      has = d.desired;
    }
  }
}

TEST(Autoscaler, OptionsAreChecked) {
  EXPECT_TRUE(check(AutoscalerOptions{}));
  AutoscalerOptions options;
  options.interval_s = 0;
  EXPECT_FALSE(check(options));
  options = {};
  options.headroom = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(check(options));
}

}  // namespace
}  // namespace berth::fleet
