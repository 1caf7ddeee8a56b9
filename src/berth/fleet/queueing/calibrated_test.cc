// What the calibrated model mends, each with the input that shows it
// (docs/explanation/fleet-model.md).
#include "berth/fleet/queueing/sizing.h"
#include "berth/testing/fleet.h"

namespace berth::fleet {
namespace {

/// One server on one accelerator.
System one_server(const Load& load, const Target& target, int max_batch = 0, int max_queue = 64) {
  System system;
  system.accelerators["A"] = {.type = "T", .power = {}, .cost = 100};
  system.capacities["T"] = {1000};
  system.models["M"].accelerators["A"] = {
      .max_batch = 512, .at_tokens = 1024, .alpha_ms = 8, .beta_ms = 0.02, .gamma_ms = 0.0001};
  system.classes["C"] = {.priority = 1, .targets = {{"M", target}}};
  Server& server = system.servers["S"];
  server.service_class = "C";
  server.model = "M";
  server.max_batch = max_batch;
  server.max_queue = max_queue;
  server.current.load = load;
  return system;
}

Load load_of(double arrivals_per_min, double in_tokens, double out_tokens) {
  return {.arrivals_per_min = arrivals_per_min, .in_tokens = in_tokens, .out_tokens = out_tokens};
}

Candidate only(const Candidates& made) {
  EXPECT_EQ(made.all.size(), 1U);
  return made.all.empty() ? Candidate{} : made.all[0];
}

TEST(Calibrated, LargerBatchCeilingNeverNeedsMoreReplicas) {
  const Load load = load_of(60, 30'000, 16);
  int reference = 0, least = INT_MAX;
  for (int ceiling = 1; ceiling <= 256; ++ceiling) {
    const System system = one_server(load, {.itl_ms = 600, .ttft_ms = 8000}, ceiling);
    const int replicas = only(candidates(system, QueueModel::calibrated)).replicas;
    EXPECT_LE(replicas, least) << "ceiling " << ceiling;
    least = std::min(least, replicas);
    const Candidates as_before = candidates(system, QueueModel::reference);
    if (!as_before.all.empty()) reference = std::max(reference, as_before.all[0].replicas);
  }
  EXPECT_LE(least, 3);
  EXPECT_GT(reference, 2 * least);  // the fault is there to be mended
}

TEST(Calibrated, PromptsAloneAreTraffic) {
  const System system = one_server(load_of(600, 2000, 0), {.ttft_ms = 2000});
  EXPECT_EQ(only(candidates(system, QueueModel::calibrated)).itl_ms, 0);
  EXPECT_GE(only(candidates(system, QueueModel::calibrated)).replicas, 1);
  EXPECT_GT(only(candidates(system, QueueModel::calibrated)).ttft_ms, 0);
  EXPECT_EQ(only(candidates(system, QueueModel::reference)).replicas, 0);
}

TEST(Calibrated, ThroughputTargetNeverPlansBelowTheLoad) {
  const Load load = load_of(3000, 512, 128);
  const auto replicas = [&](double tps, QueueModel model) {
    return only(candidates(one_server(load, {.itl_ms = 50, .ttft_ms = 2000, .tps = tps}), model))
        .replicas;
  };
  EXPECT_LT(replicas(1, QueueModel::reference), replicas(0, QueueModel::reference));
  EXPECT_GE(replicas(1, QueueModel::calibrated), replicas(0, QueueModel::calibrated));
  EXPECT_GT(replicas(60'000, QueueModel::calibrated), replicas(0, QueueModel::calibrated));
}

TEST(Calibrated, LossIsBoundedWhateverTheQueue) {
  for (const int queue : {0, 1, 8, 64})
    for (const double arrivals : {10.0, 500.0, 20'000.0})
      for (const double out : {0.0, 16.0, 512.0}) {
        const System system =
            one_server(load_of(arrivals, 1000, out), {.itl_ms = 60, .ttft_ms = 3000}, 0, queue);
        const Candidate c = only(candidates(system, QueueModel::calibrated));
        const Demand demand{1000, out, 0, queue, {}};
        const Operation o =
            operation_at(demand, system.models.at("M").accelerators.at("A"), c.batch,
                         arrivals / 60'000 / c.replicas, QueueModel::calibrated);
        EXPECT_LE(o.loss, 0.01) << queue << " " << arrivals << " " << out;
        EXPECT_LE(o.itl_ms, 60);
        EXPECT_LE(o.ttft_ms, 3000);
      }
}

TEST(Calibrated, ReferenceMeetsTargetsByTurningRequestsAway) {
  const System system =
      one_server(load_of(20'000, 1000, 16), {.itl_ms = 60, .ttft_ms = 3000}, 8, 0);
  const Candidate c = only(candidates(system, QueueModel::reference));
  const Operation o = operation_at({1000, 16, 8, 0, {}}, system.models.at("M").accelerators.at("A"),
                                   8, 20'000.0 / 60'000 / c.replicas, QueueModel::reference);
  EXPECT_GT(o.loss, 0.05);
}

TEST(Calibrated, BatchIsNoLargerThanItHasToBe) {
  const System system = one_server(load_of(600, 128, 128), {.itl_ms = 12, .ttft_ms = 1000});
  const Candidate calibrated = only(candidates(system, QueueModel::calibrated));
  const Candidate reference = only(candidates(system, QueueModel::reference));
  EXPECT_LT(calibrated.batch, reference.batch / 4);
  EXPECT_LE(calibrated.replicas, reference.replicas);
}

TEST(Calibrated, RequestsMustFitTheMemory) {
  System system = one_server(load_of(60, 30'000, 16), {.ttft_ms = 20'000});
  system.models["M"].accelerators["A"].max_batch = 8;  // × 1024 tokens
  const Candidates made = candidates(system, QueueModel::calibrated);
  EXPECT_TRUE(made.all.empty());
  EXPECT_EQ(made.refusals[0], Refusal::memory);
  EXPECT_EQ(plan(system).servers.at("S").reason, "A: its memory is too small for one request");
}

TEST(Calibrated, PriceChangeAloneCanMoveAServer) {
  System system = one_server(load_of(60, 128, 128), {.itl_ms = 100, .ttft_ms = 2000});
  system.accelerators["B"] = {.type = "U", .power = {}, .cost = 100};
  system.capacities["U"] = {1000};
  system.models["M"].accelerators["B"] = system.models["M"].accelerators["A"];
  Allocation& current = system.servers["S"].current;
  current.accelerator = "A", current.replicas = 1, current.cost = 100;
  EXPECT_EQ(plan(system).servers.at("S").allocation.accelerator, "A");
  system.accelerators["A"].cost = 200;
  EXPECT_EQ(plan(system).servers.at("S").allocation.accelerator, "B");
  system.options.model = QueueModel::reference;  // for which no change of replicas is no change
  EXPECT_EQ(plan(system).servers.at("S").allocation.accelerator, "A");
}

TEST(Calibrated, OneServerNeverFailsTheRest) {
  System system = one_server(load_of(60, 128, 128), {.itl_ms = 100, .ttft_ms = 2000});
  const Server good = system.servers.at("S");
  Server idle = good, hopeless = good, strange = good, lost = good, wide = good;
  idle.current.load.arrivals_per_min = 0;
  system.classes["Strict"] = {.priority = 1, .targets = {{"M", {.itl_ms = 0.001}}}};
  hopeless.service_class = "Strict";
  strange.model = "unheard-of";
  lost.service_class = "unheard-of";
  system.accelerators["X"] = {.type = "", .power = {}, .cost = 1};
  system.models["W"].accelerators["X"] = system.models["M"].accelerators["A"];
  system.classes["C"].targets["W"] = {.itl_ms = 100};
  wide.model = "W";  // on an accelerator of a type of which there is none
  system.servers = {{"good", good}, {"hopeless", hopeless}, {"idle", idle},
                    {"lost", lost}, {"strange", strange},   {"wide", wide}};
  for (const Solver solver : {Solver::optimal, Solver::greedy, Solver::unlimited}) {
    system.options.solver = solver;
    const Plan made = plan(system);
    EXPECT_EQ(made.servers.at("good").why, Why::served);
    EXPECT_EQ(made.servers.at("good").allocation.replicas, 1);
    EXPECT_EQ(made.servers.at("idle").why, Why::served);
    EXPECT_EQ(made.servers.at("idle").allocation.replicas, 0);
    EXPECT_EQ(made.servers.at("hopeless").reason, "A: ITL not met even when idle");
    EXPECT_EQ(made.servers.at("strange").reason, "the model 'unheard-of' is not known");
    EXPECT_EQ(made.servers.at("lost").reason, "the service class 'unheard-of' is not known");
    EXPECT_EQ(made.servers.at("wide").why,
              solver == Solver::unlimited ? Why::served : Why::capacity);
  }
}

Percentiles ttft_p95(double ms) {
  return {.ttft_ms = {0, 0, ms, 0}};
}

TEST(Calibrated, PercentilesAreMetAndNotForNothing) {
  const Load load = load_of(20'000, 512, 128);
  const struct {
    Percentiles targets;
    Binding binding;
  } cases[] = {{ttft_p95(150), Binding::ttft_p95},
               {{.ttft_ms = {60, 0, 0, 0}}, Binding::ttft_p50},
               {{.ttft_ms = {0, 0, 0, 150}, .itl_ms = {0, 0, 0, 1000}}, Binding::ttft_p99},
               {{.itl_ms = {0, 0, 30, 0}}, Binding::itl_p95},
               {{.itl_ms = {0, 25, 0, 0}}, Binding::itl_p90},
               {ttft_p95(1e9), Binding::throughput}};
  for (const auto& [targets, binding] : cases) {
    const Target target{.itl_ms = 60, .ttft_ms = 3000, .percentiles = targets};
    const System system = one_server(load, target);
    const Performance& p = system.models.at("M").accelerators.at("A");
    const Candidate c = only(candidates(system, QueueModel::calibrated));
    EXPECT_EQ(c.binding, binding) << name(c.binding);
    const Demand demand = demand_of(load, system.servers.at("S"), target);
    const double rate = c.rate_per_s / 1000;
    const auto meets = [&](double at) {
      const Percentiles found = percentiles_at(demand, p, c.batch, at);
      for (std::size_t i = 0; i < kPercentiles.size(); ++i) {
        if (targets.ttft_ms[i] > 0 && found.ttft_ms[i] > targets.ttft_ms[i] * 1.003) return false;
        if (targets.itl_ms[i] > 0 && found.itl_ms[i] > targets.itl_ms[i] * 1.003) return false;
      }
      return true;
    };
    EXPECT_TRUE(meets(rate));
    EXPECT_TRUE(binding == Binding::throughput || !meets(rate * 1.1));
    EXPECT_TRUE(meets(load.arrivals_per_min / 60'000 / c.replicas));
  }
}

TEST(Calibrated, TighterTargetsAndMoreVariationNeverNeedFewerReplicas) {
  const auto replicas = [](const Load& load, const Percentiles& targets) {
    return only(candidates(one_server(load, {.ttft_ms = 3000, .percentiles = targets}),
                           QueueModel::calibrated))
        .replicas;
  };
  Load load = load_of(30'000, 512, 128);
  int before = replicas(load, {});
  for (double ms = 2000; ms > 30; ms *= 0.8) {
    const int now = replicas(load, ttft_p95(ms));
    EXPECT_GE(now, before) << ms;
    before = now;
  }
  before = 0;
  for (const double cv : {0.0, 0.5, 1.0, 1.5, 2.0}) {
    load.out_cv = cv, load.in_cv = cv / 2;
    const int now = replicas(load, ttft_p95(300));
    EXPECT_GE(now, before) << cv;
    before = now;
  }
}

TEST(Calibrated, ImpossiblePercentilesAreNamed) {
  const Load load = load_of(60, 512, 128);
  const auto reason = [&](const Percentiles& targets) {
    return plan(one_server(load, {.ttft_ms = 3000, .percentiles = targets})).servers.at("S").reason;
  };
  EXPECT_EQ(reason(ttft_p95(5)), "A: p95 TTFT not met even when idle");
  EXPECT_EQ(reason({.itl_ms = {0, 0, 0, 3}}), "A: p99 ITL not met even when idle");
  EXPECT_EQ(reason({.itl_ms = {3, 0, 0, 0}}), "A: p50 ITL not met even when idle");
  EXPECT_EQ(reason(ttft_p95(40)), "p95 TTFT binds");
}

TEST(Calibrated, TheLimitOfPercentilesIsAskedForOnceForEachQuestion) {
  System system =
      one_server(load_of(6000, 512, 128), {.ttft_ms = 3000, .percentiles = ttft_p95(300)});
  for (const char* more : {"T", "U"}) {
    system.servers[more] = system.servers["S"];
    system.servers[more].current.load.arrivals_per_min *= 2;
  }
  system.accelerators["B"] = system.accelerators["A"];
  system.models["M"].accelerators["B"] = system.models["M"].accelerators["A"];
  system.models["M"].accelerators["B"].alpha_ms = 9;
  system.models["N"] = system.models["M"];
  system.classes["C"].targets["N"] = system.classes["C"].targets["M"];
  system.servers["V"] = system.servers["S"];
  system.servers["V"].model = "N";
  system.servers["W"] = system.servers["S"];  // whose averages the closed form decides
  system.servers["W"].service_class = "D";
  system.classes["D"] = {.priority = 2, .targets = {{"M", {.ttft_ms = 3000}}}};

  std::vector<RateQuestion> asked;
  Execution execution;
  execution.rate_limit = [&](const RateQuestion& question) {
    asked.push_back(question);
    return question.performance.alpha_ms == 9 ? 0 : 0.5 * question.estimate_per_s;
  };
  const Candidates by_closed_form = candidates(system, QueueModel::calibrated);
  const Candidates made = candidates(system, QueueModel::calibrated, execution);
  ASSERT_EQ(asked.size(), 2U);  // on A and on B
  EXPECT_EQ(asked[0].target.percentiles, ttft_p95(300));
  EXPECT_EQ(asked[0].load.in_tokens, 512);
  EXPECT_EQ(asked[0].load.arrivals_per_min, 0);
  for (std::size_t s = 0; s < made.servers.size(); ++s) {
    const bool is_asked_for = made.servers[s] != "W";
    const Candidate& closed = by_closed_form.of(s)[0];
    const Candidate& candidate = made.of(s)[0];
    EXPECT_EQ(candidate.is_rate_asked_for, is_asked_for);
    EXPECT_EQ(made.of(s).size(), is_asked_for ? 1U : 2U);
    EXPECT_EQ(made.refusals[2 * s + 1], is_asked_for ? Refusal::ttft_p95 : Refusal::none);
    EXPECT_NEAR(candidate.rate_per_s / closed.rate_per_s, is_asked_for ? 0.5 : 1, 0.01);
    EXPECT_GE(candidate.replicas, is_asked_for ? 2 * closed.replicas - 1 : closed.replicas);
  }
  asked.clear();
  candidates(system, QueueModel::reference, execution);
  EXPECT_TRUE(asked.empty());
}

/// The closed form's tail may be too heavy where lengths vary much.
TEST(Calibrated, WhatItRefusesForAPercentileIsAskedForToo) {
  const System system =
      one_server(load_of(60, 512, 128), {.ttft_ms = 3000, .percentiles = ttft_p95(5)});
  const Candidates refused = candidates(system, QueueModel::calibrated);
  ASSERT_EQ(refused.refusals[0], Refusal::ttft_p95);
  double answer = 3;
  Execution execution;
  execution.rate_limit = [&](const RateQuestion& question) {
    EXPECT_GT(question.estimate_per_s, 0);
    return answer;
  };
  const Candidates made = candidates(system, QueueModel::calibrated, execution);
  ASSERT_EQ(made.of(0).size(), 1U);
  EXPECT_DOUBLE_EQ(made.of(0)[0].rate_per_s, 3);
  EXPECT_EQ(made.of(0)[0].binding, Binding::ttft_p95);
  answer = 0;
  EXPECT_EQ(candidates(system, QueueModel::calibrated, execution).refusals[0], Refusal::ttft_p95);
}

TEST(Calibrated, AllZeroPerformanceUnderLoadIsNamed) {
  System system = one_server(load_of(60, 128, 128), {.itl_ms = 100});
  Performance& p = system.models["M"].accelerators["A"];
  p.alpha_ms = p.beta_ms = p.gamma_ms = 0;
  for (const QueueModel model : {QueueModel::calibrated, QueueModel::reference}) {
    const Candidates made = candidates(system, model);
    EXPECT_TRUE(made.all.empty());
    EXPECT_EQ(made.refusals[0], Refusal::zero_performance);
  }
}

}  // namespace
}  // namespace berth::fleet
