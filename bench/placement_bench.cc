// What it costs to place a job: the time of one question at the 50th and 99th of a hundred, for
// each policy and objective, over random available devices, sizes and required devices; and beside
// it a plain enumeration of all partitions, which is how the usual best-effort search works.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "berth/placement/subsets.h"
#include "berth/testing/placement.h"

namespace berth::placement {
namespace {

constexpr int kQuestions = 4000;

/// 0: random scores; 1: random ones, few of them high; 2: all equal, as behind NVSwitch, which is
/// what machines of sixteen really are; 3: of strong and weak devices, where bounds tell little; 4:
/// a DGX-1 or a DGX-2.
testing::Machine bench_machine(int kind, int devices) {
  if (kind == 4) return testing::known(devices == 8 ? "dgx1-v100" : "dgx2-v100");
  Rng rng(5);
  std::vector<std::int64_t> strength;
  for (int i = 0; i < devices; ++i) strength.push_back(static_cast<std::int64_t>(rng.below(100)));
  return testing::machine("", devices, [&](int a, int b) -> std::int64_t {
    const auto score = static_cast<std::int64_t>(rng.below(1000));
    switch (kind) {
      case 0: return score;
      case 1: return score * score * score / 1'000'000;
      case 2: return 600;
      default: return strength[static_cast<std::size_t>(a)] * strength[static_cast<std::size_t>(b)];
    }
  });
}

/// The least of three, so that what else the machine does is left out.
template <class Work>
double microseconds_of(const Work& work) {
  double least = HUGE_VAL;
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    least = std::min(least, took.count());
  }
  return least;
}

void report(benchmark::State& state, std::vector<double>& times) {
  std::ranges::sort(times);
  state.counters["p50_us"] = times[times.size() / 2];
  state.counters["p99_us"] = times[times.size() * 99 / 100];
  state.counters["max_us"] = times.back();
}

/// One pass over the questions an iteration; they are the same in each.
template <class Ask>
void time_questions(benchmark::State& state, int devices, Objective objective, const Ask& ask) {
  std::vector<double> times;
  for (auto _ : state) {
    Rng rng(6);
    times.clear();
    for (int i = 0; i < kQuestions; ++i) {
      Question question = testing::random_question(rng, devices);
      question.objective = objective;
      times.push_back(microseconds_of([&] { benchmark::DoNotOptimize(ask(question)); }));
    }
  }
  report(state, times);
}

void BM_Place(benchmark::State& state, PolicyKind policy, Objective objective) {
  const auto devices = static_cast<int>(state.range(0));
  Chooser chooser = bench_machine(static_cast<int>(state.range(1)), devices).chooser();
  time_questions(state, devices, objective,
                 [&](const Question& question) { return chooser.choose(policy, question); });
}

/// The worst for a search of sixteen: all are available. `first_max_us`: the slowest of the
/// questions after one of another count, of which nothing is known yet.
void BM_PlaceOfAllSixteen(benchmark::State& state, PolicyKind policy, Objective objective) {
  Chooser chooser = bench_machine(static_cast<int>(state.range(0)), 16).chooser();
  std::vector<double> times;
  double first_max = 0;
  for (auto _ : state) {
    times.clear();
    first_max = 0;
    for (int count = 1; count <= 16; ++count) {
      double least = HUGE_VAL;
      for (int i = 0; i < 3; ++i) {
        (void)chooser.choose(policy, {first(16), 0, count == 1 ? 16 : 1, objective});
        const auto start = std::chrono::steady_clock::now();
        benchmark::DoNotOptimize(chooser.choose(policy, {first(16), 0, count, objective}));
        const std::chrono::duration<double, std::micro> took =
            std::chrono::steady_clock::now() - start;
        least = std::min(least, took.count());
      }
      first_max = std::max(first_max, least);
    }
    for (int count = 1; count <= 16; ++count)
      for (int required = 0; required < 16; ++required) {
        const Question question{first(16), required == 0 ? 0 : one(required), count, objective};
        times.push_back(
            microseconds_of([&] { benchmark::DoNotOptimize(chooser.choose(policy, question)); }));
      }
  }
  report(state, times);
  state.counters["first_max_us"] = first_max;
}

/// All partitions into sets of k, blanks included, each valued from the pairs.
class AllPartitions {
 public:
  AllPartitions(const testing::Machine& machine, int count) : machine_(machine), count_(count) {
    remainder_ = machine.devices % count;
  }

  std::int64_t best() {
    std::vector<int> left(static_cast<std::size_t>(machine_.devices));
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = static_cast<int>(i);
    divide(left, 0);
    return best_;
  }

 private:
  void divide(const std::vector<int>& left, std::int64_t score) {
    if (left.empty()) {
      best_ = std::max(best_, score);
      return;
    }
    const bool remainder_left = left.size() % static_cast<std::size_t>(count_) != 0;
    choose(left, 1, {left.front()}, count_, score);
    if (remainder_left) choose(left, 1, {left.front()}, remainder_, score);
  }

  void choose(const std::vector<int>& left, std::size_t next, const std::vector<int>& set,
              int wanted, std::int64_t score) {
    if (static_cast<int>(set.size()) == wanted) {
      for (std::size_t i = 0; i < set.size(); ++i)
        for (std::size_t j = i + 1; j < set.size(); ++j) score += machine_.at(set[i], set[j]);
      std::vector<int> rest;
      std::ranges::set_difference(left, set, std::back_inserter(rest));
      divide(rest, score);
      return;
    }
    for (; next < left.size(); ++next) {
      std::vector<int> more = set;
      more.push_back(left[next]);
      choose(left, next + 1, more, wanted, score);
    }
  }

  const testing::Machine& machine_;
  int count_, remainder_;
  std::int64_t best_ = 0;
};

/// Answers the same question as BM_BestEffortOfAll, in its own way.
void BM_AllPartitions(benchmark::State& state) {
  const testing::Machine machine = bench_machine(0, static_cast<int>(state.range(0)));
  const auto count = static_cast<int>(state.range(1));
  for (auto _ : state) benchmark::DoNotOptimize(AllPartitions(machine, count).best());
}

void BM_BestEffortOfAll(benchmark::State& state) {
  const auto devices = static_cast<int>(state.range(0));
  const auto count = static_cast<int>(state.range(1));
  const testing::Machine machine = bench_machine(0, devices);
  Chooser chooser = machine.chooser();
  const Question question{first(devices), 0, count, Objective::sum};
  if (devices <= 8 && chooser.choose(PolicyKind::best_effort, question)->partition_score !=
                          AllPartitions(machine, count).best())
    return state.SkipWithError("the two disagree");
  for (auto _ : state) benchmark::DoNotOptimize(chooser.choose(PolicyKind::best_effort, question));
}

void BM_MakeChooser(benchmark::State& state) {
  const testing::Machine machine = bench_machine(0, static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(machine.chooser());
}

void BM_PlaceOfSixtyFour(benchmark::State& state, PolicyKind policy, Objective objective) {
  Chooser chooser = bench_machine(static_cast<int>(state.range(0)), 64).chooser();
  const Question question{first(64), 0, static_cast<int>(state.range(1)), objective};
  for (auto _ : state) benchmark::DoNotOptimize(chooser.choose(policy, question));
}

void register_all() {
  const auto in_ms = [](benchmark::internal::Benchmark* made) {
    return made->Unit(benchmark::kMillisecond);
  };
  for (int policy = 0; policy < kPolicies; ++policy)
    for (int objective = 0; objective < kObjectives; ++objective) {
      const auto by = static_cast<PolicyKind>(policy);
      const auto goal = static_cast<Objective>(objective);
      const std::string words = fmt::format("{}/{}", name(by), name(goal));
      in_ms(benchmark::RegisterBenchmark(("BM_Place/" + words).c_str(), BM_Place, by, goal))
          ->ArgNames({"devices", "kind"})
          ->ArgsProduct({{8, 16}, {0, 1, 2, 3, 4}});
      if (by != PolicyKind::packed && by != PolicyKind::best_effort) continue;
      in_ms(benchmark::RegisterBenchmark(("BM_PlaceOfAllSixteen/" + words).c_str(),
                                         BM_PlaceOfAllSixteen, by, goal))
          ->ArgName("kind")
          ->DenseRange(0, 4);
      in_ms(benchmark::RegisterBenchmark(("BM_PlaceOfSixtyFour/" + words).c_str(),
                                         BM_PlaceOfSixtyFour, by, goal))
          ->ArgNames({"kind", "k"})
          ->ArgsProduct({{0, 1}, {4, 8, 32}});
    }
}

const bool kRegistered = (register_all(), true);

BENCHMARK(BM_MakeChooser)->Arg(8)->Arg(16)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_BestEffortOfAll)
    ->ArgNames({"devices", "k"})
    ->ArgsProduct({{8, 12, 16}, {2, 4}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_AllPartitions)
    ->ArgNames({"devices", "k"})
    ->ArgsProduct({{8, 12, 16}, {2, 4}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace berth::placement
