// The cost of the scheduler itself: tasks that do nothing, a million queued, a million gated, and
// many resource classes with many workers.
#include <benchmark/benchmark.h>

#include <fstream>

#include "berth/testing/schedule.h"

namespace berth::schedule {
namespace {

constexpr std::int64_t kGpu = 1;

double resident_mib() {
  std::ifstream statm("/proc/self/statm");
  double size = 0, resident = 0;
  statm >> size >> resident;
  return resident * 4096 / (1 << 20);
}

/// Carries out starts by ending them at once, until nothing starts any more.
std::int64_t run_all(Scheduler& scheduler, std::vector<Effect> effects) {
  std::int64_t ended = 0;
  std::vector<Effect> next;
  while (!effects.empty()) {
    for (const auto& effect : effects) {
      const auto* start = std::get_if<StartAttempt>(&effect);
      if (start == nullptr) continue;
      scheduler.ended(start->token, Verdict::done, Mono{}, next);
      ++ended;
    }
    effects.clear();
    std::swap(effects, next);
  }
  return ended;
}

/// range(0) tasks through `range(1)` slots of one worker.
void BM_ScheduleNoOps(benchmark::State& state) {
  const auto tasks = testing::tasks_of(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    Scheduler scheduler({});
    std::vector<Effect> effects;
    scheduler.add(tasks, effects);
    scheduler.joined({.id = {1}, .resources = testing::cpu(state.range(1) * 1000)}, Mono{},
                     effects);
    if (run_all(scheduler, std::move(effects)) != state.range(0)) state.SkipWithError("lost some");
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["a_task"] =
      benchmark::Counter(static_cast<double>(state.iterations() * state.range(0)),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_ScheduleNoOps)
    ->Args({50'000, 1})
    ->Args({50'000, 64})
    ->Args({1'000'000, 64})
    ->Unit(benchmark::kMillisecond);

/// `range(0)` resource classes by turns, the odd ones for GPUs that no worker has, and `range(1)`
/// workers.
void BM_ScheduleShapes(benchmark::State& state) {
  auto tasks = testing::tasks_of(50'000);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i) % state.range(0);
    tasks[i].resources = testing::cpu(1000 + number, number % 2 == 1 ? kGpu : 0);
  }
  for (auto _ : state) {
    Scheduler scheduler({});
    std::vector<Effect> effects;
    scheduler.add(tasks, effects);
    for (int id = 1; id <= state.range(1); ++id)
      scheduler.joined({.id = {id}, .resources = testing::cpu(8000)}, Mono{}, effects);
    benchmark::DoNotOptimize(run_all(scheduler, std::move(effects)));
  }
  state.SetItemsProcessed(state.iterations() * 25'000);
}
BENCHMARK(BM_ScheduleShapes)
    ->Args({10, 1})
    ->Args({10, 64})
    ->Args({200, 8})
    ->Unit(benchmark::kMillisecond);

/// A million gated tasks, as of a flow: added, each let through its gate, and run. `mib` is what
/// they take in memory.
void BM_ScheduleGated(benchmark::State& state) {
  auto tasks = testing::tasks_of(static_cast<int>(state.range(0)));
  for (auto& task : tasks) task.gated = true;
  for (auto _ : state) {
    const double before = resident_mib();
    Scheduler scheduler({});
    std::vector<Effect> effects;
    scheduler.add(tasks, effects);
    state.counters["mib"] = resident_mib() - before;
    for (const auto& task : tasks) scheduler.proceed(task.number, effects);
    scheduler.joined({.id = {1}, .resources = testing::cpu(64000)}, Mono{}, effects);
    if (run_all(scheduler, std::move(effects)) != state.range(0)) state.SkipWithError("lost some");
  }
}
BENCHMARK(BM_ScheduleGated)->Arg(1'000'000)->Iterations(1)->Unit(benchmark::kMillisecond);

/// A million ready at once.
void BM_ScheduleQueued(benchmark::State& state) {
  const auto tasks = testing::tasks_of(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    const double before = resident_mib();
    Scheduler scheduler({});
    std::vector<Effect> effects;
    scheduler.add(tasks, effects);
    state.counters["mib"] = resident_mib() - before;
    benchmark::DoNotOptimize(scheduler.needs());
  }
}
BENCHMARK(BM_ScheduleQueued)->Arg(1'000'000)->Iterations(1)->Unit(benchmark::kMillisecond);

/// One more task when a million wait already.
void BM_ScheduleSubmit(benchmark::State& state) {
  Scheduler scheduler({});
  std::vector<Effect> effects;
  scheduler.add(testing::tasks_of(static_cast<int>(state.range(0))), effects);
  std::int64_t number = state.range(0);
  for (auto _ : state) {
    const Task task{.number = {++number}, .resources = testing::cpu(1000)};
    scheduler.add(std::span(&task, 1), effects);
  }
}
BENCHMARK(BM_ScheduleSubmit)->Arg(1'000)->Arg(1'000'000)->Iterations(1'000'000);

}  // namespace
}  // namespace berth::schedule
