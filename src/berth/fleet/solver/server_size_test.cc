#include "berth/fleet/solver/server_size.h"

#include "berth/fleet/model/system_view.h"
#include "berth/testing/fleet.h"
#include "berth/testing/generated_fleet.h"

namespace berth::fleet {
namespace {

using testing::fleet;

Execution counting(std::map<RateQuestion, int>& asked, double part) {
  Execution execution;
  execution.rate_limit = [&asked, part](const RateQuestion& question) {
    ++asked[question];
    return part * question.estimate_per_s;
  };
  return execution;
}

TEST(ServerSize, HasTheCandidatesOfThePlan) {
  for (const QueueModel model : {QueueModel::calibrated, QueueModel::reference})
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      System system = testing::generated_fleet(seed, 30, 6);
      system.options.model = model;
      for (auto& [name, server] : system.servers)  // from regular arrivals to bursts
        server.current.load.arrival_cv = 2.0 * static_cast<double>(seed - 1);
      const Candidates made = candidates(system, model);
      for (std::size_t s = 0; s < made.servers.size(); ++s) {
        const auto size = size_server(system, made.servers[s]);
        ASSERT_TRUE(size);
        const Candidate* least = nullptr;
        for (const Candidate& c : made.of(s)) {
          if (least == nullptr || c.value < least->value) least = &c;
          const bool none = c.accelerator == Candidate::kNothing;
          const auto& sized = size->accelerators.at(none ? "" : made.accelerators[c.accelerator]);
          EXPECT_EQ(sized.allocation,
                    allocation_of(system, made, system.servers.at(made.servers[s]), c, c.replicas));
          EXPECT_NEAR(sized.value, c.value, 1e-9 * std::max(1.0, c.cost));
          EXPECT_NEAR(sized.watts, c.watts, 1e-9 * c.watts);
          EXPECT_EQ(sized.binding, c.binding);
          EXPECT_EQ(sized.saturated, false);
          if (size->server.current.load.arrivals_per_min > 0) {
            EXPECT_EQ(sized.rate_per_s, c.rate_per_s);
          }
        }
        for (std::size_t a = 0; a < made.accelerators.size(); ++a)
          EXPECT_EQ(size->accelerators.at(made.accelerators[a]).refusal,
                    made.refusals[s * made.accelerators.size() + a]);
        EXPECT_EQ(size->best.has_value(), least != nullptr);
        if (least != nullptr && least->accelerator != Candidate::kNothing) {
          EXPECT_EQ(size->best, made.accelerators[least->accelerator]);
        }
      }
    }
}

TEST(ServerSize, WhatAPlanGaveIsNotSaturatedAndAReplicaLessIs) {
  System system = testing::generated_fleet(5, 40, 6);
  system.options.solver = Solver::unlimited;
  for (auto& [name, server] : system.servers)
    server.current.load.arrival_cv = server.max_queue > 64 ? 3 : 1;
  for (const auto& [name, assignment] : plan(system).servers) {
    if (assignment.why != Why::served || assignment.allocation.accelerator.empty()) continue;
    const Load load = system.servers.at(name).current.load;
    system.servers.at(name).current = assignment.allocation;
    auto size = size_server(system, name);
    ASSERT_TRUE(size);
    EXPECT_EQ(size->current.saturated, false) << name;
    if (load.arrivals_per_min > 0) {
      EXPECT_EQ(size->current.allocation, assignment.allocation) << name;
    }
    EXPECT_NEAR(size->current.watts, assignment.watts, 1e-9 * assignment.watts);
    EXPECT_EQ(size->current.value, 0);
    EXPECT_EQ(size->accelerators.at(assignment.allocation.accelerator).value, 0);
    if (assignment.binding == Binding::min_replicas) continue;
    --system.servers.at(name).current.replicas;
    size = size_server(system, name);
    EXPECT_EQ(size->current.saturated, true) << name;
  }
}

/// A server that f1 has, with what it needs on A0 for its current allocation.
System served() {
  System system = fleet("f1");
  system.servers.at("S0").current = *create(system, "S0", "A0");
  return system;
}

TEST(ServerSize, RepliesForSoManyReplicas) {
  System system = served();
  system.servers.at("S0").current.load.arrivals_per_min *= 50;
  const int needed = size_server(system, "S0", {"A0"})->accelerators.at("A0").allocation.replicas;
  ASSERT_GT(needed, 2);
  const double each = create(system, "S0", "A0")->cost / needed;
  for (const int replicas : {1, needed - 1, needed, 3 * needed}) {
    const auto size = size_server(system, "S0", {"A0", replicas});
    ASSERT_EQ(size->accelerators.size(), 1U);
    const SizedAllocation& sized = size->accelerators.at("A0");
    EXPECT_EQ(sized.allocation.replicas, replicas);
    EXPECT_NEAR(sized.allocation.cost, each * replicas, 1e-9);
    EXPECT_EQ(sized.saturated, replicas < needed) << replicas;
    EXPECT_EQ(size->best.has_value(), replicas >= needed);
    EXPECT_EQ(sized.difference.replicas, replicas - 1);
  }
  EXPECT_EQ(why_no_best(*size_server(system, "S0", {"A0", 1})), "A0: saturated");
  EXPECT_EQ(size_server(system, "S0", {"A0", -1}).error().kind, ErrorKind::invalid);
}

TEST(ServerSize, TheMinimumOfReplicasSaturatesNobody) {
  System system = served();
  system.servers.at("S0").min_replicas = 5;
  const auto size = size_server(system, "S0");
  EXPECT_EQ(size->current.saturated, false) << "one replica has the load in hand";
  EXPECT_EQ(size->accelerators.at("A0").allocation.replicas, 5);
  EXPECT_EQ(size->accelerators.at("A0").binding, Binding::min_replicas);
  EXPECT_EQ(size->accelerators.at("A0").rate_binding, size->current.rate_binding);
  EXPECT_NE(size->current.rate_binding, Binding::min_replicas);
  EXPECT_FALSE(*saturated(system, "S0", system.servers.at("S0").current, 60));
}

TEST(ServerSize, AnIdleServerHasItsLimitsToo) {
  System system = served();
  const double rate_per_s = size_server(system, "S0")->current.rate_per_s;
  ASSERT_GT(rate_per_s, 0);
  system.servers.at("S0").current.load.arrivals_per_min = 0;
  system.servers.at("S0").min_replicas = 0;
  const auto size = size_server(system, "S0");
  EXPECT_EQ(size->current.rate_per_s, rate_per_s);
  EXPECT_EQ(size->accelerators.at("A0").rate_per_s, rate_per_s);
  EXPECT_EQ(size->accelerators.at("A0").refusal, Refusal::idle);
  EXPECT_EQ(size->best, "");
  EXPECT_EQ(size->current.saturated, false);
  EXPECT_LT(size->accelerators.at("").value, 0) << "it costs less than what the server has";
  EXPECT_EQ(size_server(system, "S0", {"A0", 2})->best, "A0");
}

TEST(ServerSize, AnAcceleratorThatIsNamedNeedNotBeTheKeptOne) {
  System system = served();
  system.servers.at("S0").keep_accelerator = true;
  EXPECT_EQ(size_server(system, "S0")->accelerators.at("A2").refusal, Refusal::kept);
  EXPECT_EQ(size_server(system, "S0")->best, "A0");
  const auto moved = size_server(system, "S0", {"A2"});
  EXPECT_EQ(moved->best, "A2");
  EXPECT_EQ(moved->accelerators.size(), 1U);
  EXPECT_EQ(moved->accelerators.at("A2").difference.from, "A0");
  EXPECT_EQ(moved->accelerators.at("A2").difference.to, "A2");
}

TEST(ServerSize, AMixHasTheFiguresOfItsParts) {
  System system = testing::generated_fleet(9, 60, 8);
  system.options.heterogeneous = true;
  testing::limit_to(system, 0.6, candidates(system, system.options.model));
  int mixes = 0;
  for (const auto& [name, assignment] : plan(system).servers) {
    if (assignment.allocation.parts.empty()) continue;
    ++mixes;
    system.servers.at(name).current = assignment.allocation;
    const auto size = size_server(system, name);
    EXPECT_EQ(size->current.saturated, false) << name;
    EXPECT_EQ(size->current.rate_per_s, 0);
    const Allocation& now = size->current.allocation;
    EXPECT_NEAR(now.itl_ms, assignment.allocation.itl_ms, 1e-9 * now.itl_ms);
    EXPECT_NEAR(now.ttft_ms, assignment.allocation.ttft_ms, 1e-9 * now.ttft_ms);
    EXPECT_NEAR(now.utilisation, assignment.allocation.utilisation, 1e-9);
    EXPECT_NEAR(size->current.watts, assignment.watts, 1e-9 * assignment.watts);
    system.servers.at(name).current.load.arrivals_per_min *= 1000;
    EXPECT_EQ(size_server(system, name)->current.saturated, true) << name;
  }
  EXPECT_GT(mixes, 0);
}

TEST(ServerSize, LimitsForPercentilesAreAskedForOnce) {
  System system = served();
  const double before = size_server(system, "S0")->current.rate_per_s;
  for (auto& [model, target] : system.classes.at(class_of(system.servers.at("S0"))).targets)
    target.percentiles.ttft_ms[2] = 1e6;
  std::map<RateQuestion, int> asked;
  const Execution execution = counting(asked, 0.5);
  const auto size = size_server(system, "S0", {}, execution);
  ASSERT_FALSE(asked.empty());
  for (const auto& [question, times] : asked) EXPECT_EQ(times, 1);
  EXPECT_TRUE(size->current.is_rate_asked_for);
  EXPECT_LT(size->current.rate_per_s, 0.6 * before);
  EXPECT_TRUE(size->current.allocation.percentiles);
  const Allocation now = system.servers.at("S0").current;
  const double within = 60 * 0.75 * before;
  EXPECT_FALSE(*saturated(system, "S0", now, within));
  EXPECT_TRUE(*saturated(system, "S0", now, within, execution));
  Load load = now.load;
  load.arrivals_per_min = within;
  EXPECT_EQ(scale(system, "S0", now, load)->replicas, 1);
  EXPECT_EQ(scale(system, "S0", now, load, execution)->replicas, 2);
  system.servers.at("S0").current.load = load;
  EXPECT_EQ(create(system, "S0", "A0", execution)->replicas, 2);
  EXPECT_GE(reallocate(system, "S0", execution)->replicas, 1);
}

TEST(ServerSize, WhatIsNotKnownIsSaid) {
  System system = served();
  EXPECT_EQ(size_server(system, "S00").error().message,
            "no server 'S00' is known; did you mean 'S0'?");
  EXPECT_EQ(size_server(system, "S0", {"B0"}).error().kind, ErrorKind::not_found);
  system.servers.at("S0").current.accelerator = "gone";
  auto size = size_server(system, "S0");
  EXPECT_EQ(size->current.refusal, Refusal::no_performance);
  EXPECT_FALSE(size->current.saturated);
  system.servers.at("S0").model = "gone";
  size = size_server(system, "S0");
  EXPECT_EQ(size->current.refusal, Refusal::no_performance);
  EXPECT_FALSE(size->best);
  EXPECT_NE(why_no_best(*size).find("A0: unknown model"), std::string::npos);
  system.servers.at("S0").current = {};
  EXPECT_EQ(size_server(system, "S0")->current.refusal, Refusal::none);
  EXPECT_EQ(reallocate(system, "S0").error().kind, ErrorKind::impossible);
  system.accelerators.clear();
  EXPECT_EQ(why_no_best(*size_server(system, "S0")), "no accelerators are known");
}

TEST(ServerSize, AnotherMeanStretchesAHistogramAndAVariationReplacesIt) {
  System system = served();
  Load& load = system.servers.at("S0").current.load;
  load.out_histogram = *LengthHistogram::of({{100, 3}, {500, 1}});
  load.out_tokens = 200;
  const auto asked = [&](const std::string& text) {
    return size_as_asked(system, "S0", {"q", text})->server.current.load;
  };
  EXPECT_EQ(asked(R"({"load": {"arrivalRate": 7}})").out_histogram, load.out_histogram);
  const Load longer = asked(R"({"load": {"avgOutTokens": 300}})");
  EXPECT_EQ(longer.out_tokens, 300);
  EXPECT_EQ(longer.out_histogram.stretched(longer.out_tokens),
            (std::vector<LengthHistogram::Bin>{{150, 3}, {750, 1}}));
  EXPECT_FALSE(asked(R"({"load": {"outTokensCv": 1}})").out_histogram);
  const Load other = asked(R"({"load": {"outTokensHistogram": [{"tokens": 10, "weight": 1}]}})");
  EXPECT_EQ(other.out_tokens, 10);
  EXPECT_EQ(other.out_cv, 0);
  EXPECT_EQ(size_as_asked(system, "S0", {"q", R"({"load": {"avgOutTokens": 9,
                "outTokensHistogram": [{"tokens": 10, "weight": 1}]}})"})
                .error()
                .message,
            "q: load: avgOutTokens: 9, the mean of outTokensHistogram is 10");
}

TEST(ServerSize, ReplicasOfNoAcceleratorAreNone) {
  System system = served();
  system.servers.at("S0").current.accelerator.clear();
  const auto size = size_server(system, "S0");
  EXPECT_EQ(size->current.refusal, Refusal::none);
  EXPECT_EQ(size->current.saturated, true);
  EXPECT_EQ(size->current.watts, 0);
  EXPECT_TRUE(*saturated(system, "S0", system.servers.at("S0").current, 1));
}

TEST(ServerSize, WhereTargetsCannotBeMetAnyLoadSaturates) {
  System system = served();
  for (auto& [model, target] : system.classes.at(class_of(system.servers.at("S0"))).targets)
    target.itl_ms = 1e-3;
  const auto size = size_server(system, "S0");
  EXPECT_EQ(size->current.refusal, Refusal::itl);
  EXPECT_EQ(size->current.saturated, true);
  EXPECT_GT(size->current.allocation.itl_ms, 1) << "its figures are told all the same";
  EXPECT_TRUE(*saturated(system, "S0", system.servers.at("S0").current, 1));
  EXPECT_FALSE(*saturated(system, "S0", system.servers.at("S0").current, 0));
}

TEST(ServerSize, IsWrittenWithWholeNumbersAndTheKeysOfDocuments) {
  const System system = served();
  const auto size = size_server(system, "S0");
  const Json json = *parse_json(size_json(*size));
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["server"], "S0");
  EXPECT_EQ(json["best"], *size->best);
  EXPECT_EQ(json["current"]["accelerator"], "A0");
  EXPECT_TRUE(json["current"]["numReplicas"].is_number_integer());
  EXPECT_EQ(json["current"]["saturated"], false);
  const Json& best = json["candidates"][*size->best];
  EXPECT_EQ(best, *parse_json(best_json(*size)));
  EXPECT_EQ(best["difference"]["from"], "A0");
  EXPECT_TRUE(best["difference"]["numReplicas"].is_number_integer());
  EXPECT_EQ(best["difference"]["numReplicas"].get<int>(), best["numReplicas"].get<int>() - 1);
  EXPECT_NEAR(best["maxRatePerReplica"].get<double>(),
              60 * size->accelerators.at(*size->best).rate_per_s, 1e-9);
  EXPECT_EQ(json["candidates"].size() + json["refused"].size(), system.accelerators.size());
}

}  // namespace
}  // namespace berth::fleet
