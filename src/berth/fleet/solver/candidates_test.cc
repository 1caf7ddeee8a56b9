#include "berth/fleet/queueing/thinning.h"
#include "berth/fleet/simulate/simulated_limit.h"
#include "berth/fleet/simulate/simulation.h"
#include "berth/testing/fleet.h"
#include "berth/testing/generated_fleet.h"

namespace berth::fleet {
namespace {

using testing::near;

class Fleets : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Reference, Fleets, ::testing::Values("f1", "f2", "f3", "f9"));

/// "S1 A0: 2 × batch 8, cost 4, ITL 1.5, TTFT 20" of every candidate that the reference has and of
/// every one that we have.
TEST_P(Fleets, EveryCandidateIsTheReferences) {
  const System system = testing::fleet(GetParam());
  const Candidates made = candidates(system, QueueModel::reference);
  const Json expected = testing::expected(GetParam())["candidates"];
  std::size_t count = 0;
  for (std::size_t s = 0; s < made.servers.size(); ++s) {
    const std::string& server = made.servers[s];
    count += expected.value(server, Json::object()).size();
    for (const Candidate& c : made.of(s)) {
      const std::string name =
          c.accelerator == Candidate::kNothing ? "-" : made.accelerators[c.accelerator];
      ASSERT_TRUE(expected.contains(server) && expected[server].contains(name))
          << server << " " << name;
      const Json& e = expected[server][name];
      EXPECT_EQ(c.replicas, e["numReplicas"]) << server << " " << name;
      EXPECT_EQ(c.batch, e["maxBatch"]) << server << " " << name;
      EXPECT_TRUE(near(c.cost, e["cost"])) << server << " " << name << " " << c.cost << " " << e;
      EXPECT_TRUE(near(c.itl_ms, e["itlAverage"]))
          << server << " " << name << " " << c.itl_ms << " " << e;
      EXPECT_TRUE(near(c.ttft_ms, e["ttftAverage"]))
          << server << " " << name << " " << c.ttft_ms << " " << e;
    }
  }
  EXPECT_EQ(made.all.size(), count);
  EXPECT_GT(count, 10U);
}

/// What is not asked for when the time is over is what the closed form says, also where it refuses.
TEST(Candidates, WithoutTimeAreTheClosedForms) {
  System system = testing::generated_fleet(5, 40, 4);
  for (auto& [name, service_class] : system.classes)
    for (auto& [model, target] : service_class.targets)
      target.percentiles.ttft_ms[3] = 0.3 * target.ttft_ms;
  const Candidates closed_form = candidates(system, QueueModel::calibrated);
  Execution execution;
  execution.rate_limit = [](const RateQuestion& question) { return question.estimate_per_s / 2; };
  const Candidates asked = candidates(system, QueueModel::calibrated, execution);
  EXPECT_FALSE(asked.stopped);
  EXPECT_GT(asked.all.size(), closed_form.all.size()) << "of those that the closed form refuses";
  execution.stop = [] { return true; };
  const Candidates stopped = candidates(system, QueueModel::calibrated, execution);
  EXPECT_TRUE(stopped.stopped);
  EXPECT_EQ(stopped.refusals, closed_form.refusals);
  ASSERT_EQ(stopped.all.size(), closed_form.all.size());
  for (std::size_t i = 0; i < stopped.all.size(); ++i) {
    EXPECT_EQ(stopped.all[i].replicas, closed_form.all[i].replicas);
    EXPECT_FALSE(stopped.all[i].is_rate_asked_for);
  }
  EXPECT_TRUE(solve(system, stopped, system.options, execution).proof.stopped);
}

/// One server of a model on one accelerator, under arrivals that vary.
System one_server_under(double arrivals_per_min, double arrival_cv, const Target& target) {
  System system;
  system.accelerators["A"] = {.type = "T", .power = {}, .cost = 100};
  system.models["M"].accelerators["A"] = {
      .max_batch = 34, .at_tokens = 1024, .alpha_ms = 55, .beta_ms = 0.3, .gamma_ms = 0.0007};
  system.classes["C"] = {.priority = 1, .targets = {{"M", target}}};
  system.servers["S"] = {
      .service_class = "C", .model = "M", .max_queue = 100'000, .current = {}, .desired = {}};
  system.servers["S"].current.load = {.arrivals_per_min = arrivals_per_min,
                                      .in_tokens = 700,
                                      .out_tokens = 250,
                                      .in_cv = 1,
                                      .out_cv = 1,
                                      .arrival_cv = arrival_cv};
  return system;
}

Target mean_and_p95(double mean_ms, double p95_ms) {
  return {.ttft_ms = mean_ms, .percentiles = {.ttft_ms = {0, 0, p95_ms, 0}}};
}

/// The fewest replicas of which each takes its part of the load with what it sees of the arrivals,
/// looked for one by one.
int fewest(System system, const Execution& execution) {
  Server& server = system.servers.at("S");
  const Load whole = server.current.load;
  for (int n = 1;; ++n) {
    server.current.load.arrivals_per_min = whole.arrivals_per_min / n;
    server.current.load.arrival_cv =
        thinned({.target = {}, .arrival_cv = whole.arrival_cv}, 1.0 / n).arrival_cv;
    const Candidates made = candidates(system, QueueModel::calibrated, execution);
    if (!made.all.empty() && made.all[0].replicas == 1) return n;
  }
}

TEST(Candidates, EachReplicaSeesItsPartOfTheArrivals) {
  Execution asks;
  asks.rate_limit = [](const RateQuestion& question) {
    // As of a simulator: it tells otherwise than the closed form, and bursts cost more.
    return question.estimate_per_s * (1.2 - 0.1 * question.load.arrival_cv);
  };
  int whole_bursts = 0, planned = 0;
  for (const double cv : {0.0, 0.5, 1.0, 1.5, 3.0, 9.0})
    for (const double rate : {10.0, 70.0, 300.0, 900.0})
      for (const Target& target : {Target{.itl_ms = 120, .ttft_ms = 1000}, mean_and_p95(0, 3000)}) {
        SCOPED_TRACE(fmt::format("cv {}, {} a minute, {}", cv, rate, target.ttft_ms));
        const System system = one_server_under(rate, cv, target);
        for (const Execution& execution : {Execution{}, asks}) {
          const Candidates made = candidates(system, QueueModel::calibrated, execution);
          ASSERT_EQ(made.all.size(), 1U);
          EXPECT_EQ(made.all[0].replicas, fewest(system, execution));
          // The figures are of the same arrivals as the limit.
          EXPECT_TRUE(target.ttft_ms == 0 || made.all[0].ttft_ms <= target.ttft_ms);
        }
        if (cv != 9 || rate != 900) continue;
        planned += candidates(system, QueueModel::calibrated).all[0].replicas;
        const Candidates each_all =
            candidates(one_server_under(1, cv, target), QueueModel::calibrated);
        whole_bursts += each_all.all.empty() ? 10'000 : int(rate / 60 / each_all.all[0].rate_per_s);
      }
  EXPECT_LT(2 * planned, whole_bursts) << "as if every replica saw all bursts";
}

TEST(Candidates, BurstsAskTheSimulatorAFewTimesMore) {
  for (const double cv : {0.0, 0.5, 1.5, 3.0, 9.0}) {
    int asked = 0;
    Execution execution;
    execution.rate_limit = [&](const RateQuestion& question) {
      ++asked;
      return 0.95 * question.estimate_per_s;
    };
    System system = one_server_under(3000, cv, mean_and_p95(0, 3000));
    candidates(system, QueueModel::calibrated, execution);
    EXPECT_LE(asked, 4) << cv;
    system.options.model = QueueModel::reference;
    asked = 0;
    candidates(system, QueueModel::reference, execution);
    EXPECT_EQ(asked, 0);
  }
}

/// Equal variations are not equal lengths, and equal bins are, whoever made them.
TEST(Candidates, EqualHistogramsShareASimulationAndOthersDoNot) {
  System system = one_server_under(300, 1, mean_and_p95(0, 3000));
  const Server plain = system.servers.at("S");
  const auto with = [&](const std::string& name, std::vector<LengthHistogram::Bin> bins) {
    Server server = plain;
    Load& load = server.current.load;
    load.in_histogram = *LengthHistogram::of(std::move(bins));
    load.in_tokens = load.in_histogram.mean();
    load.in_cv = load.in_histogram.cv();
    system.servers[name] = server;
    return load;
  };
  system.servers.clear();
  with("a", {{200, 24}, {12'700, 1}});
  const Load same = with("b", {{12'700, 1}, {200, 24}});
  Load by_cv = same;
  by_cv.in_histogram = {};
  system.servers["c"] = plain;
  system.servers["c"].current.load = by_cv;
  std::map<RateQuestion, double> asked;
  Execution execution;
  execution.rate_limit = [&](const RateQuestion& question) {
    EXPECT_FALSE(asked.contains(question));
    return asked[question] = simulated_limit(question, {.requests = 10'000});
  };
  const Candidates made = candidates(system, QueueModel::calibrated, execution);
  ASSERT_EQ(made.all.size(), 3U);
  EXPECT_EQ(asked.size(), 2U);
  EXPECT_EQ(made.of(0)[0].rate_per_s, made.of(1)[0].rate_per_s);
  EXPECT_LT(made.of(0)[0].rate_per_s, 0.9 * made.of(2)[0].rate_per_s);
  const Candidates reference = candidates(system, QueueModel::reference);
  EXPECT_EQ(reference.of(0)[0].rate_per_s, reference.of(2)[0].rate_per_s);
}

TEST(Candidates, WhatIsPlannedForBurstsIsWhatTheSimulatorSays) {
  Execution execution;
  execution.rate_limit = [](const RateQuestion& question) { return simulated_limit(question); };
  for (const double cv : {0.5, 3.0}) {
    const System system = one_server_under(200, cv, mean_and_p95(0, 4000));
    Allocation allocation = solve(system, candidates(system, QueueModel::calibrated, execution),
                                  {.solver = Solver::unlimited})
                                .servers.at("S")
                                .allocation;
    const SimulationOptions drawn{.trace = {}};
    EXPECT_LE(simulate_server(system, "S", allocation, drawn)->ttft_ms.percentiles[2].value, 4000);
    --allocation.replicas;
    EXPECT_GT(simulate_server(system, "S", allocation, drawn)->ttft_ms.percentiles[2].value, 4000);
  }
}

}  // namespace
}  // namespace berth::fleet
