// What it costs to reserve a part of a machine, and to take one through its ledger.
#include <benchmark/benchmark.h>

#include "berth/machine/machine.h"

namespace berth::machine {
namespace {

constexpr std::int64_t kGi = 1 << 30;

Block server(int cores) {
  Block block;
  block.resources.set(Known::cpu, cores * 1000);
  block.resources.set(Known::mem, 4 * kGi * cores);
  for (int core = 0; core < cores; ++core) block.cores.push_back({core, core / 32, 1000});
  return block;
}

Request one_core(int holder) {
  Request request;
  request.resources.set(Known::cpu, 1000);
  request.resources.set(Known::mem, kGi);
  request.holder = fmt::format("sweep-1/{}", holder);
  return request;
}

void BM_ReserveRelease(benchmark::State& state) {
  Machine machine(server(64));
  std::vector<Reservation> others;
  for (int i = 0; i < 30; ++i) others.push_back(*machine.reserve(one_core(i)));
  const Request request = one_core(30);
  for (auto _ : state) {
    auto held = machine.reserve(request);
    benchmark::DoNotOptimize(held->release());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_ReserveRelease);

}  // namespace
}  // namespace berth::machine

BENCHMARK_MAIN();
