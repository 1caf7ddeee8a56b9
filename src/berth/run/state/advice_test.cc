#include "berth/run/state/advice.h"

#include <gtest/gtest.h>

#include "berth/base/rng.h"

namespace berth::run {
namespace {

constexpr std::int64_t kMegabyte = 1'000'000;

AttemptUse use(std::int64_t asked, std::int64_t peak, std::int64_t ms = 2000,
               std::int64_t cpu_ms = 1000) {
  return {.mem_asked = asked * kMegabyte,
          .mem_peak = peak * kMegabyte,
          .cpu_asked = 1000,
          .cpu_ms = cpu_ms,
          .time = from_ms(ms)};
}

StepAdvice of(std::vector<AttemptUse> uses) {
  return advise("a", uses);
}

TEST(Advice, ThePeakAndALittleMore) {
  EXPECT_EQ(of({use(400, 250)}).mem, 266 * kMegabyte);
  EXPECT_EQ(of({use(0, 1000)}).mem, 1050 * kMegabyte);
  EXPECT_EQ(of({use(0, 1)}).mem, 17 * kMegabyte) << "a process needs a little";
  EXPECT_EQ(of({use(0, 30'000)}).mem, 31'500 * kMegabyte);
  EXPECT_EQ(of({use(400, 100), use(400, 250), use(400, 50)}).mem, 266 * kMegabyte);
}

TEST(Advice, WhoManagedWithALimitNeedsNoMore) {
  EXPECT_EQ(of({use(400, 400)}).mem, 400 * kMegabyte) << "files that it read filled it";
  EXPECT_EQ(of({use(100, 300)}).mem, 316 * kMegabyte) << "the limit was advice";
  EXPECT_EQ(of({{.cpu_asked = 1000, .cpu_ms = 2000, .time = from_ms(2000)}}).cpu, 1000);
}

TEST(Advice, CoresAndTime) {
  const auto advice = of({use(0, 1, 2000, 3000), use(0, 1, 90'000, 9000), use(0, 1, 10, 10)});
  EXPECT_EQ(advice.cpu_used, 1500);
  EXPECT_EQ(advice.cpu, 1700);
  EXPECT_EQ(advice.longest, std::chrono::seconds(90));
  EXPECT_EQ(advice.timeout, std::chrono::minutes(3));
  EXPECT_EQ(of({use(0, 1, 10, 10)}).cpu, 0) << "too brief to tell";
  EXPECT_EQ(of({use(0, 1, 10, 10)}).timeout, std::chrono::minutes(1));
  EXPECT_EQ(of({}).timeout, Duration(0));
}

/// Whatever was used, the proposal would have been enough, and taking it again and again comes to
/// rest.
TEST(Advice, IsEnoughAndComesToRest) {
  Rng rng(3);
  for (int round = 0; round < 2000; ++round) {
    std::vector<AttemptUse> uses;
    for (std::uint64_t left = 1 + rng.next() % 20; left > 0; --left) {
      const auto peak = static_cast<std::int64_t>(1 + rng.next() % 100'000);
      uses.push_back(
          use(rng.next() % 2 == 0 ? 0 : peak + static_cast<std::int64_t>(rng.next() % 1000), peak,
              static_cast<std::int64_t>(1 + rng.next() % 10'000'000)));
    }
    const auto first = of(uses);
    for (const auto& each : uses) {
      EXPECT_GE(first.mem, each.mem_peak);
      EXPECT_GE(first.timeout, 2 * each.time);
    }
    for (auto& each : uses) each.mem_asked = first.mem;
    const auto second = of(uses);
    for (auto& each : uses) each.mem_asked = second.mem;
    EXPECT_LE(second.mem, first.mem);
    EXPECT_EQ(of(uses).mem, second.mem);
  }
}

}  // namespace
}  // namespace berth::run
