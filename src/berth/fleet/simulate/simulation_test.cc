#include "berth/fleet/simulate/simulation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace berth::fleet {
namespace {

System chat(double arrivals_per_min, int max_queue = 100) {
  System system;
  for (const char* name : {"H100", "A100"}) {
    system.accelerators[name].type = name;
    system.accelerators[name].cost = 300;
  }
  auto& performance = system.models["chat"].accelerators;
  performance["H100"] = {1, 64, 1024, 8.3, 0.036, 6.37e-5};
  performance["A100"] = {1, 64, 1024, 12.7, 0.114, 1.046e-4};
  Server& server = system.servers["s"];
  server.model = "chat";
  server.max_queue = max_queue;
  server.current.load = {arrivals_per_min, 0, 500, 100};
  return system;
}

Allocation alone(const System& system, int replicas, int batch = 64) {
  Allocation allocation;
  allocation.accelerator = "H100";
  allocation.replicas = replicas;
  allocation.batch = batch;
  allocation.load = system.servers.at("s").current.load;
  return allocation;
}

Simulated simulated(const System& system, const Allocation& allocation,
                    const SimulationOptions& options, const Execution& execution = {}) {
  const auto found = simulate_server(system, "s", allocation, options, execution);
  EXPECT_TRUE(found) << found.error().message;
  return found ? *found : Simulated{};
}

TEST(FleetSimulation, TheOrderOfExecutionChangesNothing) {
  const System system = chat(2000);
  Execution backwards;
  backwards.parallel_for = [](std::size_t count, const auto& body) {
    while (count > 0) body(--count);
  };
  const SimulationOptions options{.requests = 5000, .out_cv = 1};
  const auto a = simulated(system, alone(system, 2), options);
  const auto b = simulated(system, alone(system, 2), options, backwards);
  EXPECT_EQ(a.all_ttft_ms, b.all_ttft_ms);
  EXPECT_EQ(a.itl_ms.percentiles[3].value, b.itl_ms.percentiles[3].value);
  EXPECT_EQ(a.ttft_ms.percentiles[2].error, b.ttft_ms.percentiles[2].error);
  EXPECT_EQ(a.histories, 10);
  EXPECT_EQ(a.requests, 4500);
}

TEST(FleetSimulation, LittleLoadIsAsThePlanExpects) {
  const System system = chat(600);
  const auto planned = create(system, "s", "H100");
  ASSERT_FALSE(planned) << "there is no class";
  System with_class = system;
  with_class.classes["Free"].targets["chat"] = {.itl_ms = 30, .ttft_ms = 500};
  const auto allocation = create(with_class, "s", "H100");
  ASSERT_TRUE(allocation) << allocation.error().message;
  const auto s = simulated(with_class, *allocation, {.requests = 20'000});
  EXPECT_NEAR(s.itl_ms.mean.value, allocation->itl_ms, 0.03 * allocation->itl_ms);
  EXPECT_NEAR(s.utilisation.value, allocation->utilisation, 0.05 * allocation->utilisation);
  EXPECT_NEAR(s.throughput_per_min.value, 600, 3 * *s.throughput_per_min.error);
  EXPECT_EQ(s.lost_part.value, 0);
}

TEST(FleetSimulation, IntervalsHoldTheTruthAboutAsOftenAsTheySay) {
  // One request at a time, of one token: M/D/1, whose mean wait is known.
  System system = chat(3000, 1'000'000);
  system.servers["s"].current.load = {3000, 0, 1, 1};
  system.models["chat"].accelerators["H100"] = {1, 1, 1, 10, 0, 0};
  const double truth_ms = 10 + 10 * 0.5 / (2 * 0.5);
  int held = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto s = simulated(system, alone(system, 1, 1), {.requests = 20'000, .seed = seed});
    held += std::abs(s.ttft_ms.mean.value - truth_ms) <= *s.ttft_ms.mean.error ? 1 : 0;
  }
  EXPECT_GE(held, 52);  // 57 are expected; fewer than 52 by chance once in a hundred times
}

/// As the command says of few requests.
TEST(FleetSimulation, IntervalsShrinkWithTheRootOfTheRequests) {
  const System system = chat(900);
  const auto error_of = [&](std::size_t requests) {
    double sum = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto s = simulated(system, alone(system, 1), {.requests = requests, .seed = seed});
      EXPECT_TRUE(s.is_settled());
      sum += *s.ttft_ms.mean.error;
    }
    return sum;
  };
  EXPECT_NEAR(error_of(40'000) / error_of(160'000), 2, 0.35);
}

TEST(FleetSimulation, AnEmptyStartIsKnownByTheTimesThatRequestsAreServed) {
  const System system = chat(1200);
  const auto few = simulated(system, alone(system, 1), {.requests = 2000});
  EXPECT_FALSE(few.is_settled());
  const auto many = simulated(system, alone(system, 1), {.requests = 100'000});
  EXPECT_TRUE(many.is_settled());
  // A tenth of ten histories of 10,000, at 20 a second.
  const double served_s = many.in_service.value / (many.throughput_per_min.value / 60);
  EXPECT_NEAR(many.left_out, 1000 / 20.0 / served_s, 0.02 * many.left_out);
  // Figures that begin with empty replicas are too low: they are no proof that a target is met.
  const auto& mean = few.ttft_ms.mean;
  EXPECT_LT(mean.value, many.ttft_ms.mean.value);
  EXPECT_EQ(verdict(few, mean, few.ttft_ms.count, 100 * mean.value), Verdict::unsure);
  EXPECT_EQ(verdict(few, mean, few.ttft_ms.count, 0.01 * mean.value), Verdict::missed);
}

TEST(FleetSimulation, AVerdictIsAsSureAsItsInterval) {
  EXPECT_EQ(verdict({100, 10}, 110), Verdict::met);
  EXPECT_EQ(verdict({100, 10}, 109), Verdict::unsure);
  EXPECT_EQ(verdict({100, 10}, 90), Verdict::unsure);
  EXPECT_EQ(verdict({100, 10}, 89), Verdict::missed);
  EXPECT_EQ(verdict({100, {}}, 100), Verdict::met);
  EXPECT_EQ(verdict({100, {}}, 99), Verdict::missed);
  Simulated s;
  s.histories = 10;
  EXPECT_EQ(verdict(s, {100, 10}, 1000, 0), Verdict::none);
  EXPECT_EQ(verdict(s, {100, 10}, 1000, 200), Verdict::met);
  EXPECT_EQ(verdict(s, {100, 10}, 1000, 105), Verdict::unsure);
  s.lost_part = {0.01, 0.001};
  EXPECT_EQ(verdict(s, {100, 10}, 1000, 200), Verdict::unsure);
  EXPECT_EQ(verdict(s, {100, 10}, 1000, 50), Verdict::missed);
  s.lost_part = {0.02, 0.001};
  EXPECT_EQ(verdict(s, {100, 10}, 1000, 200), Verdict::missed);
}

TEST(FleetSimulation, WhoServesNobodyMeetsNoTarget) {
  System system = chat(600, 0);
  system.models["chat"].accelerators["H100"].alpha_ms = 1e9;  // the first is never done
  const auto s = simulated(system, alone(system, 1, 1), {.requests = 5000});
  EXPECT_EQ(s.ttft_ms.count, 0);
  EXPECT_EQ(s.lost_part.value, 1);
  EXPECT_EQ(verdict(s, s.ttft_ms.mean, s.ttft_ms.count, 800), Verdict::missed);
  EXPECT_EQ(verdict(s, s.itl_ms.percentiles[2], s.itl_ms.count, 40), Verdict::missed);
  // One token an answer: there is nothing between tokens, nor anything to be met.
  System short_answers = chat(600);
  short_answers.servers["s"].current.load.out_tokens = 1;
  const auto one = simulated(short_answers, alone(short_answers, 1), {.requests = 20'000});
  EXPECT_EQ(one.itl_ms.count, 0);
  EXPECT_EQ(verdict(one, one.itl_ms.mean, one.itl_ms.count, 40), Verdict::none);
  EXPECT_EQ(verdict(one, one.ttft_ms.mean, one.ttft_ms.count, 800), Verdict::met);
}

TEST(FleetSimulation, PercentilesAreOfWhatWasMeasured) {
  const System system = chat(900);
  std::vector<Request> trace;
  for (int i = 0; i < 1000; ++i) trace.push_back({i * 65.0 + i % 7, 300 + i % 90, 50});
  const auto s = simulated(system, alone(system, 1), {.trace = trace});
  const auto expected = quantiles(s.all_ttft_ms, kPercentiles);
  for (std::size_t p = 0; p < kPercentiles.size(); ++p)
    EXPECT_EQ(s.ttft_ms.percentiles[p].value, expected[p]) << kPercentileNames[p];
  EXPECT_EQ(s.ttft_ms.count, 1000);
  EXPECT_EQ(s.itl_ms.count, 1000 * 49);
}

TEST(FleetSimulation, TheSameDrawsAtAGreaterRateWaitLonger) {
  double before = 0;
  for (const double rate : {600.0, 900.0, 1200.0, 1230.0}) {
    const System system = chat(rate);
    const auto s = simulated(system, alone(system, 1), {.requests = 10'000});
    EXPECT_GT(s.ttft_ms.mean.value, before) << rate;
    before = s.ttft_ms.mean.value;
  }
}

TEST(FleetSimulation, AMixGetsItsPartsOfTheLoad) {
  const System system = chat(2000);
  Allocation mix = alone(system, 3);
  mix.parts = {alone(system, 2), alone(system, 1, 32)};
  mix.parts[1].accelerator = "A100";
  mix.parts[0].load.arrivals_per_min = 1800, mix.parts[1].load.arrivals_per_min = 200;
  const auto shares = shares_of(system, system.servers.at("s"), mix, Routing::random);
  ASSERT_TRUE(shares);
  ASSERT_EQ(shares->size(), 2U);
  EXPECT_EQ((*shares)[1].deployment.batch, 32);
  EXPECT_EQ((*shares)[1].deployment.step.alpha_ms, 12.7);
  EXPECT_EQ((*shares)[1].load_part, 0.1);
  const auto s = simulated(system, mix, {.requests = 20'000});
  EXPECT_NEAR(s.throughput_per_min.value, 2000, 40);
  mix.parts[0].load.arrivals_per_min = 0, mix.parts[1].load.arrivals_per_min = 2000;
  const auto all_on_one = simulated(system, mix, {.requests = 20'000});
  EXPECT_GT(all_on_one.lost_part.value, 0.2);
}

TEST(FleetSimulation, ATraceIsTakenAsItIsOrAtTheLoadOrForItsTokens) {
  const System system = chat(600);
  std::vector<Request> trace;
  for (int i = 0; i < 1001; ++i) trace.push_back({i * 1000.0, 300, 50});
  const auto as_it_is = simulated(system, alone(system, 1), {.trace = trace});
  EXPECT_EQ(as_it_is.requests, 1001);
  EXPECT_EQ(as_it_is.histories, 1);
  EXPECT_FALSE(as_it_is.ttft_ms.mean.error);
  EXPECT_NEAR(as_it_is.throughput_per_min.value, 60, 0.1);
  const auto at_load =
      simulated(system, alone(system, 1), {.trace = trace, .trace_use = TraceUse::at_load});
  EXPECT_NEAR(at_load.throughput_per_min.value, 600, 6);
  // All of the trace's requests are alike: so are those that are drawn of it, and of no other kind.
  System alike = system;
  alike.servers["s"].current.load = {600, 0, 300, 50};
  const SimulationOptions drawn{.requests = 5000};
  SimulationOptions tokens = drawn;
  tokens.trace = trace, tokens.trace_use = TraceUse::tokens;
  EXPECT_EQ(simulated(system, alone(system, 1), tokens).all_ttft_ms,
            simulated(alike, alone(alike, 1), drawn).all_ttft_ms);
}

TEST(FleetSimulation, SaysWhatIsMissing) {
  const System system = chat(600);
  const auto refusal = [&](const Allocation& allocation, const SimulationOptions& options = {}) {
    const auto found = simulate_server(system, "s", allocation, options);
    return found ? std::string("none") : found.error().message;
  };
  Allocation other = alone(system, 1);
  other.accelerator = "L4";
  EXPECT_EQ(refusal(other), "no performance data of 'chat' on 'L4'");
  EXPECT_EQ(refusal({}), "it has no accelerator");
  EXPECT_EQ(refusal(alone(system, 0)), "it has no replicas");
  EXPECT_EQ(refusal(alone(system, 1, 0)), "maxBatch: expected at least 1, got 0");
  Allocation idle = alone(system, 1);
  idle.load.arrivals_per_min = 0;
  EXPECT_EQ(refusal(idle), "it has no load");
  EXPECT_EQ(refusal(alone(system, 1), {.out_cv = -1}),
            "out_tokens: expected a cv of 0 to 100, got -1");
  EXPECT_FALSE(simulate_server(system, "nobody", alone(system, 1), {}));
}

}  // namespace
}  // namespace berth::fleet
