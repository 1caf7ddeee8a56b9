// What it costs to plan a fleet: candidates of 10,000 servers on 21 accelerators, and the optimum
// of 1,000 × 20 and 10,000 × 20 under tight and loose capacity, on one thread.
#include <benchmark/benchmark.h>

#include "berth/testing/generated_fleet.h"

namespace berth::fleet {
namespace {

void BM_FleetCandidates(benchmark::State& state) {
  const auto model = static_cast<QueueModel>(state.range(0));
  const System system = testing::generated_fleet(1, static_cast<int>(state.range(1)), 21);
  std::size_t count = 0, bytes = 0;
  for (auto _ : state) {
    const Candidates made = candidates(system, model);
    count = made.all.size();
    bytes = made.all.capacity() * sizeof(Candidate) + made.refusals.capacity();
  }
  state.counters["candidates"] = static_cast<double>(count);
  state.counters["MB"] = static_cast<double>(bytes) / 1e6;
  state.SetLabel(model == QueueModel::reference ? "reference" : "calibrated");
}
BENCHMARK(BM_FleetCandidates)->Args({1, 10'000})->Args({0, 10'000})->Unit(benchmark::kMillisecond);

void BM_FleetOptimum(benchmark::State& state) {
  System system = testing::generated_fleet(2, static_cast<int>(state.range(0)), 20);
  const Candidates made = candidates(system, QueueModel::reference);
  const auto percent = static_cast<double>(state.range(1));
  testing::limit_to(system, percent / 100, made);
  Plan plan;
  for (auto _ : state) plan = solve(system, made, {.model = QueueModel::reference});
  state.counters["gap_permille"] = 1000 * plan.proof.gap;
  int unserved = 0, bound = 0;
  for (const auto& [priority, count] : plan.proof.unserved) unserved += count;
  for (const auto& [priority, count] : plan.proof.unserved_bound) bound += count;
  state.counters["unserved"] = unserved;
  state.counters["unserved_bound"] = bound;
}
BENCHMARK(BM_FleetOptimum)
    ->ArgsProduct({{60, 1'000, 10'000}, {30, 60, 90, 150}})
    ->Unit(benchmark::kMillisecond);

/// The fleets of 10,000 servers that docs/explanation/fleet-solvers.md tells of, by seed: the gap
/// in parts of 1,000.
void BM_FleetSeeds(benchmark::State& state) {
  System system = testing::generated_fleet(static_cast<std::uint64_t>(state.range(0)), 10'000, 20);
  const Candidates made = candidates(system, QueueModel::reference);
  testing::limit_to(system, 0.3, made);
  Plan plan;
  for (auto _ : state) plan = solve(system, made, {.model = QueueModel::reference});
  state.counters["gap_permille"] = 1000 * plan.proof.gap;
}
BENCHMARK(BM_FleetSeeds)->DenseRange(1, 8)->Unit(benchmark::kMillisecond);

/// With mixes, and what they save: servers that would go unserved, and of the cost.
void BM_FleetMixes(benchmark::State& state) {
  System system = testing::generated_fleet(2, static_cast<int>(state.range(0)), 20);
  const Candidates made = candidates(system, QueueModel::reference);
  testing::limit_to(system, static_cast<double>(state.range(1)) / 100, made);
  Options options{.model = QueueModel::reference};
  const Plan alone = solve(system, made, options);
  options.heterogeneous = true;
  Plan plan;
  for (auto _ : state) plan = solve(system, made, options);
  state.counters["gap_permille"] = 1000 * plan.proof.gap;
  std::string unserved;  // by priority
  int mixes = 0;
  for (const auto& [priority, count] : plan.proof.unserved)
    unserved +=
        fmt::format(" {} (in any plan {}, without mixes {})", count,
                    plan.proof.unserved_bound.at(priority), alone.proof.unserved.at(priority));
  state.SetLabel("unserved by priority:" + unserved);
  for (const auto& [_, server] : plan.servers) mixes += server.allocation.parts.empty() ? 0 : 1;
  state.counters["mixes"] = mixes;
  state.counters["cost"] = plan.cost;
  state.counters["cost_alone"] = alone.cost;
  state.counters["value"] = plan.proof.value;
  state.counters["value_alone"] = alone.proof.value;
}
BENCHMARK(BM_FleetMixes)
    ->ArgsProduct({{60, 1'000}, {30, 60, 90, 150}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace berth::fleet
