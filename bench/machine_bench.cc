// What it costs to reserve a part of a machine, and to take one through its ledger.
#include <benchmark/benchmark.h>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>

#include "berth/machine/ledger/ledger.h"
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

/// A process that holds one core until it is killed.
pid_t hold_a_core(const std::string& directory) {
  std::array<int, 2> ready{};
  if (pipe(ready.data()) != 0) return -1;
  const pid_t pid = fork();
  if (pid == 0) {
    const auto env = os::posix_env();
    const Request request = one_core(getpid());
    const auto alloc = Ledger::open(*env, directory)
                           ->acquire({server(64)}, {request.resources, request.holder, 0}, {});
    const char held = alloc ? 1 : 0;
    if (write(ready[1], &held, 1) == 1) pause();
    _exit(1);
  }
  char held = 0;
  const bool told = pid > 0 && read(ready[0], &held, 1) == 1 && held == 1;
  ::close(ready[0]);
  ::close(ready[1]);
  return told ? pid : -1;
}

/// In a directory of the disk under /tmp, and of memory, as /run/lock is.
void BM_Ledger(benchmark::State& state, const char* parent) {
  std::string directory = fmt::format("{}/berth-bench-XXXXXX", parent);
  if (mkdtemp(directory.data()) == nullptr) return state.SkipWithError("no directory");
  std::vector<pid_t> others;
  for (int i = 0; i < 20; ++i) others.push_back(hold_a_core(directory));
  const auto env = os::posix_env();
  auto ledger = *Ledger::open(*env, directory);
  if (ledger.entries()->size() != others.size()) state.SkipWithError("the others do not hold");
  const Request request = one_core(0);
  const Block total = server(64);
  for (auto _ : state) {
    const auto alloc = ledger.acquire({total}, {request.resources, request.holder, 0}, {});
    if (!alloc || !ledger.release(alloc->id)) state.SkipWithError("refused");
  }
  state.SetItemsProcessed(state.iterations());
  for (const pid_t pid : others) {
    if (pid <= 0) continue;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  std::filesystem::remove_all(directory);
}
BENCHMARK_CAPTURE(BM_Ledger, disk, "/tmp")->UseRealTime();
BENCHMARK_CAPTURE(BM_Ledger, memory, "/dev/shm")->UseRealTime();

}  // namespace
}  // namespace berth::machine
