// Prefill and decode apart: against brute force on small fleets, the pools' closed form against
// simulation, and cases by name.
#include "berth/fleet/solver/splits.h"

#include <cstdlib>

#include "berth/base/rng.h"
#include "berth/fleet/document/manifests.h"
#include "berth/fleet/model/system_view.h"
#include "berth/fleet/queueing/sizing.h"
#include "berth/fleet/simulate/simulated_limit.h"
#include "berth/fleet/simulate/simulation.h"
#include "berth/fleet/solver/server_size.h"
#include "berth/testing/fleet.h"

namespace berth::fleet {
namespace {

constexpr Options kApart{.disaggregated = true};

Performance performance(double alpha_ms, double prefill_ms) {
  return {.max_batch = 128,
          .at_tokens = 4096,
          .alpha_ms = alpha_ms,
          .beta_ms = 0.05,
          .gamma_ms = 0.00002,
          .beta_prefill_ms = prefill_ms,
          .transfer = Transfer{3, 0.006}};
}

/// Prompts of 2,000 tokens, which keep a token waiting for longer than any may wait.
System long_prompts(double arrivals_per_min = 1800) {
  System system;
  system.accelerators["H"] = {.type = "H", .power = {}, .cost = 400};
  system.accelerators["A"] = {.type = "A", .power = {}, .cost = 200};
  system.capacities["H"] = {200};
  system.capacities["A"] = {200};
  system.models["m"].accelerators["H"] = performance(8, 0.03);
  system.models["m"].accelerators["A"] = performance(12, 0.07);
  Target target;
  target.percentiles.ttft_ms[2] = 600;
  target.percentiles.itl_ms[3] = 30;
  system.classes["gold"] = {1, {{"m", target}}};
  Server server;
  server.service_class = "gold";
  server.model = "m";
  server.max_queue = 64;
  server.current.load = {arrivals_per_min, 0, 2000, 200, 0.7, 0.8};
  system.servers["s"] = server;
  system.options = kApart;
  return system;
}

Execution simulated() {
  Execution execution;
  execution.rate_limit = [](const RateQuestion& question) {
    return simulated_limit(question, {.requests = 20'000});
  };
  return execution;
}

// ---- The choice ---------------------------------------------------------------------------------

/// What a server may get: units by type, and the value.
using Ways = std::vector<std::pair<std::vector<std::int64_t>, double>>;

Ways ways_of(const System& system, const Candidates& made, std::size_t s) {
  const Server& server = system.servers.at(made.servers[s]);
  Ways ways;
  const auto add = [&](const Allocation& to, std::span<const Candidate> of) {
    std::vector<std::int64_t> units(made.types.size());
    for (std::size_t i = 0; i < of.size(); ++i) {
      const int replicas = to.parts.empty() ? to.replicas : to.parts[i].replicas;
      units[made.type_of[of[i].accelerator]] += std::int64_t{of[i].units_per_replica} * replicas;
    }
    ways.emplace_back(units, transition_value(server.current, to, made.model));
  };
  for (const Candidate& c : made.of(s))
    add(allocation_of(system, made, server, c, c.replicas), {&c, 1});
  for (const Candidate& p : made.pools[s])
    for (const Candidate& d : made.pools[s]) {
      if (p.role != Role::prefill || d.role != Role::decode) continue;
      const int beyond = std::max(0, server.min_replicas - p.replicas - d.replicas);
      for (int more = 0; more <= beyond; ++more) {
        Allocation to;
        for (const Candidate* c : {&p, &d}) {
          Allocation part;
          part.accelerator = made.accelerators[c->accelerator];
          part.role = c->role;
          part.replicas = c->replicas + (c == &p ? more : beyond - more);
          part.cost = c->cost / c->replicas * part.replicas;
          to.cost += part.cost;
          to.replicas += part.replicas;
          to.parts.push_back(part);
        }
        add(to, std::array{p, d});
      }
    }
  return ways;
}

using Score = std::pair<std::map<int, int>, double>;  // unserved by priority, value

void search(const Candidates& made, const std::vector<Ways>& ways, std::size_t s,
            std::vector<std::int64_t>& left, Score& now, std::optional<Score>& best) {
  if (s == ways.size()) {
    if (!best || now < *best) best = now;
    return;
  }
  for (const auto& [units, value] : ways[s]) {
    bool fits = true;
    for (std::size_t t = 0; t < left.size(); ++t) fits = (left[t] -= units[t]) >= 0 && fits;
    now.second += value;
    if (fits) search(made, ways, s + 1, left, now, best);
    now.second -= value;
    for (std::size_t t = 0; t < left.size(); ++t) left[t] += units[t];
  }
  ++now.first[made.priority[s]];
  search(made, ways, s + 1, left, now, best);
  --now.first[made.priority[s]];
}

System random_fleet(Rng& rng) {
  System system = long_prompts();
  for (auto& [_, accelerator] : system.accelerators) accelerator.cost = 10 + 40 * rng.uniform();
  for (auto& [_, capacity] : system.capacities) capacity.count = static_cast<int>(rng.below(7));
  if (rng.below(4) == 0) system.accelerators["A"].type = "H";
  if (rng.below(4) == 0) system.models["m"].accelerators["A"].transfer.reset();
  system.classes["bronze"] = {7, system.classes["gold"].targets};
  for (Target* t : {&system.classes["gold"].targets["m"], &system.classes["bronze"].targets["m"]}) {
    t->percentiles.itl_ms[3] = rng.below(2) == 0 ? 30 : 200;
    t->itl_ms = rng.below(3) == 0 ? 20 : 0;
    t->ttft_ms = rng.below(3) == 0 ? 300 : 0;
  }
  const Server like = system.servers["s"];
  system.servers.clear();
  for (std::uint64_t s = 0; s < 1 + rng.below(3); ++s) {
    Server server = like;
    if (rng.below(2) == 0) server.service_class = "bronze";
    server.min_replicas = static_cast<int>(rng.below(7));
    server.current.load.arrivals_per_min = 50 + 900 * rng.uniform();
    server.current.load.in_tokens = 100 + static_cast<double>(rng.below(2000));
    if (rng.below(3) == 0) {
      server.current.accelerator = rng.below(2) == 0 ? "A" : "H";
      server.current.replicas = 2;
      server.current.cost = 40;
      server.keep_accelerator = rng.below(3) == 0;
    } else if (rng.below(3) == 0) {
      Allocation part;
      part.accelerator = server.current.accelerator = "H";
      part.role = Role::prefill;
      part.replicas = 1, server.current.replicas = 2;
      part.cost = 20, server.current.cost = 40;
      server.current.parts = {part, part};
      server.current.parts[1].role = Role::decode;
    }
    system.servers[fmt::format("s{}", s)] = server;
  }
  return system;
}

TEST(Splits, AreWhatBruteForceFinds) {
  Rng rng(5);
  const char* wanted = std::getenv("BERTH_BRUTE_FLEETS");
  const int fleets = wanted == nullptr ? 60 : std::atoi(wanted);
  int split = 0, fewer_unserved = 0, cheaper = 0;
  for (int i = 0; i < fleets; ++i) {
    const System system = random_fleet(rng);
    ASSERT_TRUE(check(system)) << check(system).error().message;
    const Candidates made = candidates(system, QueueModel::calibrated);
    const Plan plan = solve(system, made, system.options);
    std::vector<Ways> ways;
    for (std::size_t s = 0; s < made.servers.size(); ++s) ways.push_back(ways_of(system, made, s));
    std::vector<std::int64_t> left;
    for (const auto& type : made.types) left.push_back(system.capacities.at(type).count);
    Score now;
    for (const int priority : made.priority) now.first[priority] = 0;
    std::optional<Score> best;
    search(made, ways, 0, left, now, best);
    for (const TypeTotal& total : plan.totals) ASSERT_LE(total.used, *total.limit) << "fleet " << i;
    ASSERT_EQ(plan.proof.unserved, best->first) << "fleet " << i;
    ASSERT_EQ(plan.proof.unserved_bound, best->first) << "fleet " << i;
    ASSERT_NEAR(plan.proof.value, best->second, 1e-6) << "fleet " << i;
    ASSERT_NEAR(plan.proof.bound, best->second, 1e-6) << "fleet " << i;
    for (const auto& [name, server] : plan.servers) {
      split += server.allocation.is_split();
      ASSERT_FALSE(server.reason.empty());
    }
    const Plan together = solve(system, made, {});
    ASSERT_LE(best->first, together.proof.unserved) << "fleet " << i;
    fewer_unserved += best->first < together.proof.unserved;
    cheaper += best->first == together.proof.unserved && best->second < together.proof.value - 1e-6;
  }
  std::printf("%d fleets: %d splits; fewer unserved in %d, cheaper in %d\n", fleets, split,
              fewer_unserved, cheaper);
  EXPECT_GT(fewer_unserved, fleets / 30);
  EXPECT_GT(cheaper, fleets / 30);
}

TEST(Splits, MeetInSimulationWhatTheyArePlannedFor) {
  System system = long_prompts();
  const Plan apart = plan(system, simulated());
  const Allocation& a = apart.servers.at("s").allocation;
  ASSERT_TRUE(a.is_split()) << in_words(a);
  const auto found = simulate_server(system, "s", a, {.requests = 100'000});
  ASSERT_TRUE(found) << found.error().message;
  const Target target = target_of(system, system.servers.at("s"));
  EXPECT_LE(found->ttft_ms.percentiles[2].value, 1.03 * target.percentiles.ttft_ms[2]);
  EXPECT_LE(found->itl_ms.percentiles[3].value, 1.03 * target.percentiles.itl_ms[3]);
  EXPECT_LE(found->lost_part.value, 0.01);
  EXPECT_NEAR(found->throughput_per_min.value, 1800, 50);
  // The whole is made of the parts.
  ASSERT_EQ(a.parts.size(), 2U);
  EXPECT_EQ(a.parts[0].role, Role::prefill);
  EXPECT_EQ(a.ttft_ms, a.parts[0].ttft_ms);
  EXPECT_EQ(a.itl_ms, a.parts[1].itl_ms);
  EXPECT_EQ(a.replicas, a.parts[0].replicas + a.parts[1].replicas);
  EXPECT_EQ(a.percentiles->ttft_ms, a.parts[0].percentiles->ttft_ms);
  EXPECT_EQ(a.percentiles->itl_ms, a.parts[1].percentiles->itl_ms);
  system.options = {};
  EXPECT_LT(2 * apart.cost, plan(system, simulated()).cost);
}

TEST(Splits, EachPoolLosesAHalfOfWhatMayBeLost) {
  System system = long_prompts();
  system.servers["s"].max_queue = 1;
  system.servers["s"].max_batch = 32;
  system.classes["gold"].targets["m"] = {.itl_ms = 30, .ttft_ms = 3000};
  const Candidates made = candidates(system, QueueModel::calibrated);
  const Server& server = system.servers.at("s");
  const Demand whole = demand_of(server.current.load, server, target_of(system, server));
  int bound = 0;
  for (const Candidate& c : made.pools[0]) {
    const Performance& p = system.models.at("m").accelerators.at(made.accelerators[c.accelerator]);
    const double loss = operation_at(demand_of(whole, c.role), p, c.batch,
                                     1800.0 / 60'000 / c.replicas, QueueModel::calibrated)
                            .loss;
    EXPECT_LE(loss, 0.005 * (1 + 1e-6)) << fleet::name(c.role);
    bound += c.rate_binding == Binding::loss;
  }
  EXPECT_GT(bound, 0);
}

TEST(Splits, WithATargetForOnePercentileBothPoolsTellTheirs) {
  System system = long_prompts();
  system.classes["gold"].targets["m"].percentiles.ttft_ms = {};
  const Allocation a = plan(system).servers.at("s").allocation;
  ASSERT_TRUE(a.is_split());
  EXPECT_GT(a.percentiles->ttft_ms[0], 0);
  EXPECT_GT(a.percentiles->itl_ms[0], 0);
}

TEST(Splits, OnlyWhereTheCacheCanBeSent) {
  System system = long_prompts();
  for (auto& [_, p] : system.models["m"].accelerators) p.transfer->per_token_ms = 1;
  EXPECT_FALSE(plan(system).servers.at("s").allocation.is_split()) << "2 s for 2,000 tokens";
  for (auto& [_, p] : system.models["m"].accelerators) p.transfer.reset();
  const Plan none = plan(system);
  System without = system;
  without.options = {};
  EXPECT_EQ(plan_json(none, nullptr), plan_json(plan(without), nullptr));
}

TEST(Splits, OfAnswersOfOneTokenThereIsNothingToDecode) {
  System system = long_prompts();
  system.servers["s"].current.load.out_tokens = 1;
  for (const auto& pools : candidates(system, QueueModel::calibrated).pools)
    EXPECT_TRUE(pools.empty());
  EXPECT_EQ(plan(system).servers.at("s").why, Why::served);
}

TEST(Splits, ServeWhatNoWholeReplicaCan) {
  System system = long_prompts();
  system.classes["gold"].targets["m"].percentiles.itl_ms[3] = 0;
  system.classes["gold"].targets["m"].itl_ms = 9;  // hardly more than a step without prompts
  system.servers["s"].current.load.arrivals_per_min = 60'000;
  system.capacities["H"].count = 400;
  system.capacities["A"].count = 0;
  const Plan apart = plan(system);
  EXPECT_EQ(apart.servers.at("s").why, Why::served) << apart.servers.at("s").reason;
  EXPECT_TRUE(apart.servers.at("s").allocation.is_split());
  system.capacities["H"].count = 10;
  EXPECT_EQ(plan(system).servers.at("s").why, Why::capacity);
  // Even where a replica that does both is no candidate at all.
  Execution execution;
  execution.rate_limit = [](const RateQuestion& question) {
    return question.role == Role::whole ? 0 : question.estimate_per_s;
  };
  system.classes["gold"].targets["m"].percentiles.itl_ms[3] = 20;
  const Plan short_of = plan(system, execution);
  EXPECT_EQ(short_of.servers.at("s").why, Why::capacity);
  EXPECT_NE(short_of.servers.at("s").reason.find("H prefill + "), std::string::npos);
  system.capacities["H"].count = 400;
  const Plan served = plan(system, execution);
  EXPECT_TRUE(served.servers.at("s").allocation.is_split());
  EXPECT_EQ(served.proof.unserved_bound.at(1), 0);
}

TEST(Splits, StayWhereTheyStand) {
  System system = long_prompts();
  const Plan first = plan(system);
  system.servers["s"].current = first.servers.at("s").allocation;
  const Plan second = plan(system);
  EXPECT_EQ(in_words(second.servers.at("s").allocation),
            in_words(first.servers.at("s").allocation));
  EXPECT_NEAR(second.proof.value, 0, 1e-9);
  // Prefill and decode of one accelerator are two things, and so is a replica that does both.
  const Allocation has = system.servers["s"].current;
  Allocation together = has;
  together.parts.clear();
  EXPECT_GT(transition_value(has, together, QueueModel::calibrated), 0);
  system.servers["s"].keep_accelerator = true;
  EXPECT_EQ(in_words(plan(system).servers.at("s").allocation), in_words(has));
  // What it has is sized as what it is.
  const auto size = size_server(system, "s");
  ASSERT_TRUE(size);
  EXPECT_EQ(size->current.saturated, false);
  EXPECT_NEAR(size->current.allocation.itl_ms, has.itl_ms, 1e-9);
  EXPECT_NEAR(size->current.allocation.ttft_ms, has.ttft_ms, 1e-9);
  EXPECT_EQ(*saturated(system, "s", has, 1800), false);
  EXPECT_EQ(*saturated(system, "s", has, 3600), true);
}

TEST(Splits, OfASizeThatNothingServesNothingIsAsked) {
  System system = long_prompts();
  system.servers["s"].current = plan(system).servers.at("s").allocation;
  system.servers["s"].current.load.out_tokens = 1;  // nothing to decode
  const auto size = size_server(system, "s");
  ASSERT_TRUE(size);
  EXPECT_EQ(size->current.saturated, true);
  system.options = {};
  system.options.model = QueueModel::reference;
  const auto refused = size_server(system, "s");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("the reference model does not support"),
            std::string::npos);
}

TEST(Splits, WhatIsLostAfterItsFirstTokenArrivedOnce) {
  const Deployment prefill{.step = {1, 0, 0, 0, StepForm::sum}, .batch = 64};
  Deployment decode{.step = {100, 0, 0, 0, StepForm::sum}, .batch = 1, .queue = 0};
  decode.only_decodes = true;
  std::vector<Request> requests;
  for (int i = 0; i < 100; ++i) requests.push_back({10.0 * i, 10, 11});
  const Outcome o = simulate_split(prefill, decode, requests, 1, {}, 1);
  EXPECT_EQ(o.completed + o.lost, 100);
  EXPECT_DOUBLE_EQ(o.lost_part(), static_cast<double>(o.lost) / 100);
}

// ---- The pools ----------------------------------------------------------------------------------

TEST(Splits, TheClosedFormOfPoolsIsNearTheSimulator) {
  const System system = long_prompts();
  const Server& server = system.servers.at("s");
  const Demand whole = demand_of(server.current.load, server, target_of(system, server));
  for (const Role role : {Role::prefill, Role::decode})
    for (const auto& [name, p] : system.models.at("m").accelerators) {
      const Demand demand = demand_of(whole, role);
      const Sizing sizing = size_calibrated(demand, p);
      ASSERT_EQ(sizing.refusal, Refusal::none);
      RateQuestion question{.performance = p,
                            .load = server.current.load,
                            .batch = sizing.best_batch,
                            .queue = server.max_queue,
                            .target = demand.target,
                            .role = role,
                            .estimate_per_s = 1000 * sizing.best_rate};
      const double limit_per_s = simulated_limit(question);
      EXPECT_NEAR(question.estimate_per_s / limit_per_s, 1, 0.1) << fleet::name(role) << name;
      const Operation o = operation_at(demand, p, sizing.best_batch, 0.7 * sizing.best_rate,
                                       QueueModel::calibrated);
      auto requests = draw_requests(traffic_of(server.current.load, {}), 50'000, 3);
      give_role(requests, role);
      const Outcome found = simulate(deployment_of(p, sizing.best_batch, server.max_queue, role),
                                     requests, 1 / (0.7 * sizing.best_rate), {}, 1);
      if (role == Role::prefill)
        EXPECT_NEAR(o.ttft_ms / found.mean_ttft_ms(), 1, 0.15) << name;
      else
        EXPECT_NEAR(o.itl_ms / found.itl.mean_ms(), 1, 0.03) << name;
    }
}

TEST(Splits, OneRequestAloneTakesTheSumOfItsSteps) {
  const Deployment prefill{.step = {10, 1, 0.5, 2, StepForm::sum},
                           .batch = 4,
                           .budget = 8,
                           .ttft_offset_ms = 3,
                           .ttft_per_token_ms = 0.25};
  Deployment decode = prefill;
  decode.only_decodes = true;
  const std::vector<Request> requests{{0, 20, 3}, {1e6, 20, 1}};
  const Outcome o = simulate_split(prefill, decode, requests, 1, {}, 1);
  const double prefill_ms = 3 * 10 + 2 * 20 + 0.5 * (8 + 16 + 20);
  EXPECT_EQ(o.ttft_ms, std::vector(2, prefill_ms + 3 + 0.25 * 20));
  EXPECT_EQ(o.itl.tokens(), 2);
  EXPECT_DOUBLE_EQ(o.itl.mean_ms(), 11 + 0.5 * 21.5);
  EXPECT_EQ(o.completed, 2);
  EXPECT_EQ(o.lost, 0);
}

// ---- Documents ----------------------------------------------------------------------------------

TEST(Splits, DocumentsHaveThem) {
  System system = long_prompts();
  system.servers["s"].current = plan(system).servers.at("s").allocation;
  system.servers["s"].current.percentiles.reset();
  system.servers["s"].current.utilisation = 0;
  for (Allocation& part : system.servers["s"].current.parts)
    part.percentiles.reset(), part.utilisation = 0;
  ASSERT_TRUE(system.servers["s"].current.is_split());
  EXPECT_EQ(testing::read({{"all.json", write_document(system)}}), system);
}

TEST(Splits, AreRefusedWhereTheyMakeNoSense) {
  const auto refusal = [](const System& system) {
    const Status status = check(system);
    return status ? std::string("none") : status.error().message;
  };
  System system = long_prompts();
  const Allocation split = plan(system).servers.at("s").allocation;
  system.servers["s"].current = split;
  EXPECT_EQ(refusal(system), "none");
  system.servers["s"].current.parts[1].role = Role::prefill;
  EXPECT_EQ(
      refusal(system),
      "server 's': currentAlloc: parts: expected one with the role prefill and one with decode, "
      "got 2 and 0 among 2");
  system.servers["s"].current = split.parts[0];
  EXPECT_EQ(refusal(system), "server 's': currentAlloc: role: 'prefill' is of one of two parts");
  system = long_prompts();
  system.options.model = QueueModel::reference;
  EXPECT_NE(refusal(system).find("the reference model"), std::string::npos);
  system.options = kApart;
  system.options.power_budget_w = 1000;
  EXPECT_NE(refusal(system).find("powerBudget"), std::string::npos);
  system.options = kApart;
  system.models["m"].accelerators["H"].transfer->per_token_ms = -1;
  EXPECT_NE(refusal(system).find("transfer.perToken"), std::string::npos) << refusal(system);
  const Document nothing{
      "m.json",
      R"({"modelData": {"models": [{"name": "m", "acc": "H", "perfParms": {"transfer": {}}}]}})"};
  const auto reading = read_documents({&nothing, 1});
  ASSERT_FALSE(reading);
  EXPECT_NE(reading.error().message.find("expected fixed, perToken or both"), std::string::npos);
}

TEST(Splits, ManifestsHaveADeploymentARole) {
  System system = long_prompts();
  for (auto& [_, accelerator] : system.accelerators) accelerator.node_selector.emplace();
  system.servers["s"].start.image = "vllm";
  system.servers["s"].start.args = {"--role={role}"};
  const auto made = manifests(system, plan(system), {});
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->size(), 2U);
  std::set<std::string> names;
  for (const Manifest& m : *made) {
    names.insert(m.name);
    EXPECT_NE(m.text.find("--role=" + m.name.substr(2)), std::string::npos) << m.text;
    EXPECT_EQ(m.text.find("HorizontalPodAutoscaler"), std::string::npos);
  }
  EXPECT_EQ(names, (std::set<std::string>{"s-decode", "s-prefill"}));
}

}  // namespace
}  // namespace berth::fleet
