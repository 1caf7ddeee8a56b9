// What a graph of a million steps, or of a million tasks of one, costs; and reading a flow file.
#include "berth/flow/flow.h"

#include <benchmark/benchmark.h>

namespace berth::flow {
namespace {

World empty_world() {
  return {[](const std::string&) { return false; },
          [](const std::string&) -> Result<Words> { return Words{}; },
          [](const std::string&) -> std::optional<std::string> { return std::nullopt; }};
}

fileset::Fileset one_file() {
  return {{{".", fileset::Entry::Kind::file, sha256("x"), 1, {}}}};
}

/// Steps each of which reads what an earlier one writes: a tree of fan-out ten.
Flow tree_of_steps(std::int64_t count) {
  Flow flow{.name = "tree", .file = "tree.yaml", .steps = {}};
  flow.steps.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    Step& step = flow.steps[static_cast<std::size_t>(i)];
    step.name = fmt::format("step{}", i);
    step.run.text = "sort {in.x} > {out.o}";
    step.out.push_back({"o", fmt::format("o/{}", i)});
    step.resources.set(Known::cpu, 1000);
    if (i == 0) continue;
    step.after = {{(i - 1) / 10}};
    step.in.push_back({"x", {{fmt::format("step{}.o", (i - 1) / 10), step.after[0], 0, {}}}});
  }
  return flow;
}

void run_all(benchmark::State& state, Graph& graph) {
  std::int64_t tasks = 0;
  for (;;) {
    const auto ready = graph.take_ready();
    if (!ready) return state.SkipWithError(ready.error().message.c_str());
    if (ready->run.empty()) break;
    for (const auto task : ready->run) {
      const auto step = static_cast<std::size_t>(graph.step_of(task).value);
      std::vector<fileset::Fileset> outputs(graph.flow().steps[step].out.size(), one_file());
      if (!graph.finish(task, std::move(outputs))) return state.SkipWithError("not finished");
      ++tasks;
    }
  }
  if (!graph.done()) state.SkipWithError("not done");
  state.counters["tasks"] = static_cast<double>(tasks);
}

void BM_BuildSteps(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    Flow flow = tree_of_steps(state.range(0));
    state.ResumeTiming();
    auto graph = Graph::build(std::move(flow), empty_world());
    if (!graph) state.SkipWithError(graph.error().message.c_str());
    state.PauseTiming();  // its going
    {
      const auto gone = std::move(graph);
    }
    state.ResumeTiming();
  }
}
BENCHMARK(BM_BuildSteps)->Arg(1'000'000)->Unit(benchmark::kMillisecond)->Iterations(1);

void BM_BuildAndRunSteps(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    Flow flow = tree_of_steps(state.range(0));
    state.ResumeTiming();
    auto graph = Graph::build(std::move(flow), empty_world());
    run_all(state, *graph);
  }
}
BENCHMARK(BM_BuildAndRunSteps)->Arg(1'000'000)->Unit(benchmark::kMillisecond)->Iterations(1);

/// A foreach of so many values, another over its outputs, and one step that takes them all.
void BM_BuildAndRunForeach(benchmark::State& state) {
  std::string text = "steps:\n  a: {run: x, out: {o: a/{index}}, foreach: {v: [";
  for (std::int64_t i = 0; i < state.range(0); ++i) text += fmt::format("{},", i);
  text +=
      "]}}\n  b: {run: x, foreach: {f: a.o}, out: {o: b/{index}}}\n"
      "  c: {run: 'cat {in.all}', in: {all: b.o}}\n";
  for (auto _ : state) {
    auto flow = read_flow(text, "f.yaml");
    if (!flow) return state.SkipWithError(flow.error().message.c_str());
    auto graph = Graph::build(*std::move(flow), empty_world());
    if (!graph) return state.SkipWithError(graph.error().message.c_str());
    run_all(state, *graph);
  }
}
BENCHMARK(BM_BuildAndRunForeach)->Arg(900'000)->Unit(benchmark::kMillisecond)->Iterations(1);

void BM_ReadFlow(benchmark::State& state) {
  std::string text = "steps:\n";
  for (std::int64_t i = 0; i < state.range(0); ++i)
    text += fmt::format("  s{0}: {{run: 'sort x > y', out: {{o: o/{0}}}}}\n", i);
  for (auto _ : state)
    if (!read_flow(text, "f.yaml")) state.SkipWithError("not read");
}
BENCHMARK(BM_ReadFlow)->Arg(100'000)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace berth::flow
