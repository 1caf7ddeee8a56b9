// Files into the store and out of it, beside cp -r of the same files: ten thousand small ones and
// one of a gigabyte, on the disk under /tmp.
#include "berth/fileset/fileset.h"

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace berth::fileset {
namespace {

namespace fs = std::filesystem;

class Files {
 public:
  explicit Files(bool many) {
    if (mkdtemp(directory_.data()) == nullptr) std::abort();
    fs::create_directory(path("in"));
    std::string block(1U << 20, 'x');
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<char>(i * 2654435761U);
    if (!many) {
      std::ofstream out(path("in/big"), std::ios::binary);
      for (int i = 0; i < 1024; ++i) out.write(block.data(), 1 << 20) << i;
    }
    for (int i = 0; many && i < 10'000; ++i) {
      const auto folder = path(fmt::format("in/{:02}", i % 100));
      fs::create_directory(folder);
      std::ofstream(fmt::format("{}/{}", folder, i)) << i << block.substr(0, 1000);
    }
    std::system("sync");
  }
  ~Files() { fs::remove_all(directory_); }
  std::string path(std::string_view name) const { return fmt::format("{}/{}", directory_, name); }

 private:
  std::string directory_ = "/tmp/berth-bench-XXXXXX";
};

ObjectStore fresh_store(os::Env& env, const Files& files) {
  fs::remove_all(files.path("store"));
  return *ObjectStore::open(env, files.path("store"));
}

void BM_Capture(benchmark::State& state, bool many, Expect expect, bool again) {
  const Files files(many);
  const auto env = os::posix_env();
  auto store = fresh_store(*env, files);
  if (again && !store.capture(files.path("in"), expect)) state.SkipWithError("not captured");
  for (auto _ : state) {
    if (!again) {
      state.PauseTiming();
      store = fresh_store(*env, files);
      std::system("sync");
      state.ResumeTiming();
    }
    if (!store.capture(files.path("in"), expect)) state.SkipWithError("not captured");
  }
}
BENCHMARK_CAPTURE(BM_Capture, small_outputs, true, Expect::fresh, false)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(3)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_Capture, small_inputs, true, Expect::stored, false)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(3)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_Capture, small_again, true, Expect::stored, true)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(3)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_Capture, big_output, false, Expect::fresh, false)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(3)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_Capture, big_again, false, Expect::stored, true)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(3)
    ->UseRealTime();

void BM_Publish(benchmark::State& state, bool many, Publish how) {
  const Files files(many);
  const auto env = os::posix_env();
  auto store = fresh_store(*env, files);
  const auto captured = store.capture(files.path("in"), Expect::fresh);
  for (auto _ : state) {
    state.PauseTiming();
    fs::remove_all(files.path("out"));
    std::system("sync");
    state.ResumeTiming();
    if (!store.publish(captured->fileset, files.path("out"), how)) state.SkipWithError("not there");
  }
}
BENCHMARK_CAPTURE(BM_Publish, small_links, true, Publish::links)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(3)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_Publish, small_copies, true, Publish::copies)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(3)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_Publish, big_links, false, Publish::links)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(3)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_Publish, big_copies, false, Publish::copies)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(3)
    ->UseRealTime();

/// What anybody would do; with `sync` behind it, as what is captured is on the disk.
void BM_PlainCopy(benchmark::State& state, bool many, bool synced) {
  const Files files(many);
  const std::string copy = fmt::format("cp -r {} {}{}", files.path("in"), files.path("out"),
                                       synced ? " && sync -f " + files.path("out") : "");
  for (auto _ : state) {
    state.PauseTiming();
    fs::remove_all(files.path("out"));
    std::system("sync");
    state.ResumeTiming();
    if (std::system(copy.c_str()) != 0) state.SkipWithError("not copied");
  }
}
BENCHMARK_CAPTURE(BM_PlainCopy, small, true, false)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(3)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_PlainCopy, small_synced, true, true)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(3)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_PlainCopy, big, false, false)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(3)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_PlainCopy, big_synced, false, true)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(3)
    ->UseRealTime();

}  // namespace
}  // namespace berth::fileset
