// What a request costs in the simulator of inference servers, by load, lengths and routing, on one
// thread; what drawing it and reading percentiles off adds to that; and how exact it is.
#include <benchmark/benchmark.h>

#include <array>
#include <cmath>

#include "berth/fleet/simulate/simulator.h"

namespace berth::fleet {
namespace {

constexpr std::size_t kRequests = 20'000;
const StepTime kStep{8.3, 0.036, 0.0000637, 0.036, StepForm::sum};
const Traffic kTraffic{
    {Lengths::Kind::lognormal, 700, 1.2, {}}, {Lengths::Kind::geometric, 250, 0, {}}, 1};

void per_request(benchmark::State& state, std::size_t requests = kRequests) {
  state.counters["per_request"] = benchmark::Counter(
      static_cast<double>(requests),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// A replica of 64 at so many requests a minute, and p95 of both figures.
void BM_FleetSimulator(benchmark::State& state) {
  const Deployment deployment{kStep, 64};
  const auto requests = draw_requests(kTraffic, kRequests, 1);
  const double ms_per_unit = 60'000 / static_cast<double>(state.range(0));
  const Window window = steady_window(requests, ms_per_unit, 0.1);
  constexpr std::array kPart{0.95};
  double itl_ms = 0, ttft_ms = 0, utilisation = 0;
  for (auto _ : state) {
    const Outcome o = simulate(deployment, requests, ms_per_unit, window, 1);
    itl_ms = o.itl.quantiles_ms(kPart)[0];
    ttft_ms = quantiles(o.ttft_ms, kPart)[0];
    utilisation = o.utilisation();
  }
  state.counters["itl_p95_ms"] = itl_ms;
  state.counters["ttft_p95_ms"] = ttft_ms;
  state.counters["utilisation"] = utilisation;
  per_request(state);
}
BENCHMARK(BM_FleetSimulator)->Arg(60)->Arg(300)->Arg(500)->Arg(700)->Unit(benchmark::kMillisecond);

/// The simulation alone.
void BM_FleetSimulatorOnly(benchmark::State& state) {
  const Deployment deployment{kStep, 64};
  const auto requests = draw_requests(kTraffic, kRequests, 1);
  const double ms_per_unit = 60'000 / static_cast<double>(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(simulate(deployment, requests, ms_per_unit, {}, 1));
  per_request(state);
}
BENCHMARK(BM_FleetSimulatorOnly)->Arg(300)->Arg(500)->Unit(benchmark::kMillisecond);

/// Replicas behind a router, at 500 requests a minute each.
void BM_FleetSimulatorRouting(benchmark::State& state) {
  Deployment deployment{kStep, 64};
  deployment.replicas = static_cast<int>(state.range(1));
  deployment.routing = static_cast<Routing>(state.range(0));
  const auto requests = draw_requests(kTraffic, kRequests, 1);
  const double ms_per_unit = 60'000.0 / (500 * deployment.replicas);
  for (auto _ : state) benchmark::DoNotOptimize(simulate(deployment, requests, ms_per_unit, {}, 1));
  state.SetLabel(std::string(kRoutingNames.name(deployment.routing)));
  per_request(state);
}
BENCHMARK(BM_FleetSimulatorRouting)
    ->ArgsProduct({{0, 1, 2}, {8, 64}})
    ->Unit(benchmark::kMillisecond);

void BM_FleetSimulatorDraw(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(draw_requests(kTraffic, kRequests, 1));
  per_request(state);
}
BENCHMARK(BM_FleetSimulatorDraw)->Unit(benchmark::kMillisecond);

/// The greatest rate within p95 TTFT of 200 ms, by bisection on the same draws, 20 times by other
/// seeds: how far chance moves it, with so many requests.
void BM_FleetSimulatorLimit(benchmark::State& state) {
  const Deployment deployment{kStep, 64};
  const auto limit = [&](std::uint64_t seed) {
    const auto requests = draw_requests(kTraffic, static_cast<std::size_t>(state.range(0)), seed);
    double low = 100, high = 1500;
    for (int i = 0; i < 14; ++i) {
      const double middle = (low + high) / 2, ms_per_unit = 60'000 / middle;
      const Outcome o =
          simulate(deployment, requests, ms_per_unit, steady_window(requests, ms_per_unit, 0.1), 1);
      constexpr std::array kPart{0.95};
      (quantiles(o.ttft_ms, kPart)[0] <= 200 ? low : high) = middle;
    }
    return low;
  };
  constexpr int kSeeds = 20;
  double sum = 0, squares = 0;
  for (auto _ : state) {
    sum = squares = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const double rate = limit(seed);
      sum += rate, squares += rate * rate;
    }
  }
  const double mean = sum / kSeeds;
  state.counters["per_min"] = mean;
  state.counters["sd_percent"] = 100 * std::sqrt(squares / kSeeds - mean * mean) / mean;
}
BENCHMARK(BM_FleetSimulatorLimit)
    ->Arg(2'000)
    ->Arg(5'000)
    ->Arg(20'000)
    ->Arg(80'000)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace berth::fleet
