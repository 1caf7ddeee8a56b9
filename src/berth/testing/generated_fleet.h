// Realistic fleets by seed, for tests and benchmarks. tools/generate_fleet.py makes the same ones:
// whoever changes one changes the other.
//
// Sizes, bandwidths and prices are near to those of cards and models that there are; performance
// follows from them: a step reads the weights once (alpha), computes each token (beta) and reads
// each token's keys and values (gamma).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "berth/base/rng.h"
#include "berth/fleet/fleet.h"

namespace berth::fleet::testing {

struct Card {
  const char* type;
  double memory_gb, bandwidth_gb_s, tflops, cost, watts;
};
inline constexpr std::array<Card, 10> kCards{{{"A10", 24, 600, 125, 75, 150},
                                              {"A100", 80, 2039, 312, 180, 400},
                                              {"B200", 180, 8000, 2250, 600, 1000},
                                              {"H100", 80, 3350, 989, 300, 700},
                                              {"H200", 141, 4800, 989, 380, 700},
                                              {"L4", 24, 300, 121, 50, 72},
                                              {"L40S", 48, 864, 362, 110, 350},
                                              {"MI300X", 192, 5300, 1307, 350, 750},
                                              {"T4", 16, 320, 65, 35, 70},
                                              {"V100", 32, 900, 125, 90, 300}}};

struct Llm {
  const char* name;
  double parameters_g, kv_kb_per_token;
};
inline constexpr std::array<Llm, 8> kLlms{{{"chat-1b", 1.2, 32},
                                           {"chat-3b", 3.2, 112},
                                           {"chat-8b", 8, 128},
                                           {"code-14b", 14, 192},
                                           {"chat-27b", 27, 368},
                                           {"code-34b", 34, 192},
                                           {"chat-70b", 70, 320},
                                           {"embed-7b", 7, 128}}};

inline double rounded(double value, double to) {
  return std::round(value * to) / to;
}

inline Performance performance_of(const Llm& llm, const Card& card, int cards) {
  const double weights_gb = 2 * llm.parameters_g;
  int count = 1;  // of the accelerator for one replica
  while (count < 16 && count * cards * card.memory_gb * 0.9 < 1.3 * weights_gb) count *= 2;
  const double all = count * cards;
  Performance p;
  p.accelerators = count;
  p.at_tokens = 1024;
  const double kv_gb = all * card.memory_gb * 0.9 - weights_gb;
  p.max_batch = static_cast<int>(
      std::clamp(std::floor(kv_gb * 1e6 / llm.kv_kb_per_token / 1024), 1.0, 512.0));
  p.alpha_ms = rounded(1000 * weights_gb / (all * card.bandwidth_gb_s * 0.7) + 1.5, 1e4);
  p.beta_ms = rounded(2 * llm.parameters_g / (all * card.tflops * 0.45), 1e6);
  p.gamma_ms = rounded(llm.kv_kb_per_token / 1000 / (all * card.bandwidth_gb_s * 0.6), 1e9);
  return p;
}

/// Capacities are ample; `accelerators` up to 40: cards alone, in pairs, fours and eights.
inline System generated_fleet(std::uint64_t seed, int servers, int accelerators = 21) {
  Rng rng(seed);
  System system;
  for (int a = 0; a < accelerators; ++a) {
    const Card& card = kCards[static_cast<std::size_t>(a) % kCards.size()];
    const int cards = 1 << (a / static_cast<int>(kCards.size()));
    const std::string name = cards == 1 ? card.type : fmt::format("{}x{}", cards, card.type);
    system.accelerators[name] = {
        .type = card.type,
        .multiplicity = cards,
        .memory_gb = card.memory_gb * cards,
        .bandwidth_gb_s = card.bandwidth_gb_s * cards,
        .power = {.idle_w = card.watts * cards * 0.2,
                  .full_w = card.watts * cards,
                  .mid_w = card.watts * cards * 0.7,
                  .mid_utilisation = 0.6},
        .cost = rounded(card.cost * cards * (0.9 + 0.2 * rng.uniform()), 100)};
    system.capacities[card.type] = {1'000'000};
    for (const Llm& llm : kLlms)
      system.models[llm.name].accelerators[name] = performance_of(llm, card, cards);
  }
  const std::array<std::pair<const char*, int>, 4> classes{
      {{"Premium", 1}, {"Standard", 5}, {"Batch", 10}, {"Free", 100}}};
  for (const auto& [name, priority] : classes) {
    ServiceClass& service_class = system.classes[name];
    service_class.priority = priority;
    const double slack = 1 + std::log10(priority);
    for (const Llm& llm : kLlms)
      service_class.targets[llm.name] = {
          .itl_ms =
              rounded(slack * (40 + 1.5 * llm.parameters_g) * (0.8 + 0.4 * rng.uniform()), 10),
          .ttft_ms =
              rounded(slack * (600 + 20 * llm.parameters_g) * (0.8 + 0.4 * rng.uniform()), 10),
          .tps = 0};
  }
  for (int s = 0; s < servers; ++s) {
    Server server;
    server.service_class = classes[rng.below(classes.size())].first;
    server.model = kLlms[rng.below(kLlms.size())].name;
    server.min_replicas = static_cast<int>(rng.below(3));
    server.max_batch = rng.below(4) == 0 ? 16 << rng.below(4) : 0;
    server.max_queue = static_cast<int>(32 * rng.below(5));
    Load& load = server.current.load;
    load.arrivals_per_min = rng.below(20) == 0 ? 0 : rounded(std::exp2(2 + 8 * rng.uniform()), 10);
    load.in_tokens = std::floor(std::exp2(6 + 6 * rng.uniform()));
    load.out_tokens = std::floor(std::exp2(5 + 5 * rng.uniform()));
    if (rng.below(3) != 0) {
      const int a = static_cast<int>(rng.below(static_cast<std::uint64_t>(accelerators)));
      const auto accelerator = std::next(system.accelerators.begin(), a);
      const int each = system.models[server.model].accelerators[accelerator->first].accelerators;
      server.current.accelerator = accelerator->first;
      server.current.replicas = 1 + static_cast<int>(rng.below(4));
      server.current.cost = rounded(accelerator->second.cost * each * server.current.replicas, 100);
    }
    system.servers[fmt::format("server-{:05}", s)] = server;
  }
  return system;
}

/// What its plan without limits uses of each type, `part` of it and at least a little.
inline void limit_to(System& system, double part, const Candidates& candidates) {
  const Plan plan =
      solve(system, candidates, {.model = candidates.model, .solver = Solver::unlimited});
  double all = 0;
  for (const TypeTotal& total : plan.totals) all += static_cast<double>(total.used);
  const double little = all / static_cast<double>(plan.totals.size()) / 20;
  for (const TypeTotal& total : plan.totals)
    system.capacities[total.type].count = static_cast<std::int64_t>(
        std::ceil(part * std::max(static_cast<double>(total.used), little)));
}

}  // namespace berth::fleet::testing
