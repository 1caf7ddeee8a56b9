// What a task costs that does nothing: through the scheduler and the store that records its start
// and its end durably, with the groups of changes that the loop makes.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>

#include "berth/store/store.h"
#include "berth/testing/schedule.h"

namespace berth::run {
namespace {

constexpr auto kGroupCommit = std::chrono::milliseconds(20);  // as in run/drive/drive.cc
constexpr std::size_t kLargestBatch = 4096;

store::NewRun run_named(std::string name) {
  store::NewRun run;
  run.name = std::move(name);
  run.kind = "experiment";
  run.spec_json = "{}";
  run.directory = "/";
  return run;
}

class Recorded {
 public:
  Recorded(store::Store& store, store::RunRecord run) : store_(store), run_(std::move(run)) {}

  bool go(std::int64_t tasks, std::int64_t slots) {
    schedule::Scheduler scheduler({.epoch = run_.epoch});
    std::vector<schedule::Effect> effects, next;
    scheduler.add(schedule::testing::tasks_of(static_cast<int>(tasks)), effects);
    scheduler.joined({.id = {1}, .resources = schedule::testing::cpu(slots * 1000)}, Mono{},
                     effects);
    std::int64_t done = 0;
    bool well = true;
    while (!effects.empty() && well) {
      for (const auto& effect : effects) {
        if (const auto* start = std::get_if<schedule::StartAttempt>(&effect)) {
          batch_.emplace_back(
              store::AttemptStarted{start->task, start->token, now(), R"({"cpu":1})", "host", ""});
          scheduler.ended(start->token, schedule::Verdict::done, Mono{}, next);
        } else if (const auto* settled = std::get_if<schedule::TaskSettled>(&effect)) {
          ++done;
          batch_.emplace_back(store::AttemptEnded{.task = settled->task,
                                                  .token = settled->token,
                                                  .at = now(),
                                                  .exit_code = 0,
                                                  .detail = {},
                                                  .cpu_ms = 1,
                                                  .peak_mem = 1 << 20});
        }
      }
      effects.clear();
      std::swap(effects, next);
      const bool due = std::chrono::steady_clock::now() - committed_ >= kGroupCommit;
      if (due || batch_.size() >= kLargestBatch) well = commit();
    }
    return commit() && well && done == tasks &&
           store_.find_run(run_.name)->counts == store::Counts{.done = tasks};
  }

 private:
  Wall now() { return Wall(std::chrono::seconds(1'800'000'000) + std::chrono::nanoseconds(++ns_)); }
  bool commit() {
    const auto applied = store_.apply(run_.id, batch_);
    batch_.clear();
    committed_ = std::chrono::steady_clock::now();
    return applied && applied->refused == 0;
  }

  store::Store& store_;
  store::RunRecord run_;
  std::vector<store::Change> batch_;
  std::chrono::steady_clock::time_point committed_{};
  std::int64_t ns_ = 0;
};

/// range(0) tasks through range(1) slots; submitting them is not measured.
void BM_NoOpsRecorded(benchmark::State& state) {
  std::string directory = "/tmp/berth-bench-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) std::abort();
  {
    const auto store = store::sqlite_store(directory + "/berth.db").value();
    store::NewRun run = run_named("noops");
    for (std::int64_t i = 1; i <= state.range(0); ++i)
      run.tasks.push_back({std::to_string(i), {{"i", std::to_string(i)}}});
    for (auto _ : state) {
      state.PauseTiming();
      auto record = store->submit(run).value();
      record = store->take_over(record.id, 1, 1, Wall{}, {}).value();
      Recorded recorded(*store, record);
      state.ResumeTiming();
      if (!recorded.go(state.range(0), state.range(1))) state.SkipWithError("not all recorded");
    }
  }
  state.counters["a_task"] =
      benchmark::Counter(static_cast<double>(state.iterations() * state.range(0)),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  std::filesystem::remove_all(directory);
}
BENCHMARK(BM_NoOpsRecorded)
    ->Args({50'000, 2})
    ->Args({50'000, 64})
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

/// One more run of a task when range(0) tasks of another wait in the store already.
void BM_SubmitBeside(benchmark::State& state) {
  std::string directory = "/tmp/berth-bench-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) std::abort();
  {
    const auto store = store::sqlite_store(directory + "/berth.db").value();
    store::NewRun run = run_named("waits");
    for (std::int64_t i = 1; i <= state.range(0); ++i) run.tasks.push_back({std::to_string(i), {}});
    if (!run.tasks.empty() && !store->submit(run)) state.SkipWithError("not submitted");
    run.tasks = {{"1", {}}};
    for (auto _ : state)
      if (!store->submit(run)) state.SkipWithError("not submitted");
  }
  std::filesystem::remove_all(directory);
}
BENCHMARK(BM_SubmitBeside)->Arg(0)->Arg(1'000'000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace berth::run
