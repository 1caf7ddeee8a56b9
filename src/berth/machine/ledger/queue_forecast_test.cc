#include "berth/machine/ledger/queue_forecast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "berth/base/rng.h"
#include "berth/testing/ledger.h"
#include "berth/testing/machine.h"

namespace berth::machine {
namespace {

using std::chrono::seconds;

Host host_of_cores(int count) {
  Host host;
  host.total.resources.set(Known::cpu, count * 1000);
  host.total.resources.set(Known::mem, 8 * kGi);
  for (int core = 0; core < count; ++core) host.total.cores.push_back({core, 0, 1000});
  return host;
}

AllocRequest request_of(int cores, std::int64_t priority, std::string label) {
  AllocRequest ask{{}, std::move(label), priority};
  ask.resources.set(Known::cpu, cores * 1000);
  return ask;
}

/// A run that does as run::Leases and run::Drive do, on the real ledger.
struct PlayedRun {
  PlayedRun(FakeMachine& machine, int number, AllocRequest wanted)
      : env(machine, 100 + number),
        ledger(*Ledger::open(env, "/run/lock/berth")),
        ask(std::move(wanted)) {}

  FakeProcess env;
  Ledger ledger;
  AllocRequest ask;
  Duration takes{};
  std::int64_t tasks = 0;  // not begun, but for those that it holds or waits for room for
  std::optional<AllocId> ticket;
};

/// Runs side by side on one machine, second by second.
struct PlayedMachine {
  struct Held {
    std::size_t run;
    AllocId id;
    Duration ends;
  };
  FakeMachine machine;
  Host host;
  std::vector<std::unique_ptr<PlayedRun>> runs;
  std::vector<Held> held;                        // in the order in which they were given
  std::vector<std::optional<Duration>> started;  // by run, of those that waited
  Duration now{};

  bool acquire(std::size_t number) {
    auto& run = *runs[number];
    const auto alloc = run.ledger.acquire(host, run.ask, run.ticket);
    if (!alloc) return false;
    held.push_back({number, alloc->id, now + run.takes});
    if (run.ticket && !started[number]) started[number] = now;
    run.ticket.reset();
    return true;
  }
  void start_what_may() {
    for (bool any = true; std::exchange(any, false);)
      for (std::size_t i = 0; i < runs.size(); ++i) any = (runs[i]->ticket && acquire(i)) || any;
  }
  void end_one(std::size_t at) {
    auto& run = *runs[held[at].run];
    if (run.tasks > 0 && !*run.ledger.others_wait(run.ask.priority)) {
      --run.tasks;
      held[at].ends = now + run.takes;
      return;
    }
    const std::size_t number = held[at].run;
    ASSERT_TRUE(run.ledger.release(held[at].id));
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
    const bool has_more = std::ranges::find(held, number, &Held::run) != held.end() || run.ticket;
    if (run.tasks == 0 || has_more) return;
    --run.tasks;
    run.ticket = run.ledger.new_ticket();
    acquire(number);
  }
  void advance() {
    now += seconds(1);
    machine.wall += seconds(1);
    for (std::size_t at = 0; at < held.size();) {
      if (held[at].ends != now) {
        ++at;
        continue;
      }
      end_one(at);
      start_what_may();
      at = 0;  // the next one that ends now, in the order in which they were given
    }
  }
};

/// Runs that hold and runs that wait, of which all is known.
PlayedMachine play_of(std::uint64_t seed) {
  Rng rng(seed);
  const auto below = [&](std::uint64_t bound) { return static_cast<int>(rng.below(bound)); };
  const int cores = 2 + below(5);
  PlayedMachine play;
  play.host = host_of_cores(cores);
  const int count = 2 + below(6);
  play.started.resize(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    play.machine.wall += std::chrono::milliseconds(1);
    const auto number = static_cast<std::size_t>(i);
    auto& run = *play.runs.emplace_back(
        std::make_unique<PlayedRun>(play.machine, i,
                                    request_of(1 + below(static_cast<std::uint64_t>(cores)),
                                               below(3) == 0 ? 1 : 0, "r-" + std::to_string(i))));
    run.takes = seconds(1 + below(9));
    run.tasks = below(5);
    for (int allocs = below(4); allocs > 0 && play.acquire(number); --allocs) {
      play.held.back().ends = seconds(1 + below(9));
      play.machine.wall += std::chrono::milliseconds(1);
    }
    if (std::ranges::find(play.held, number, &PlayedMachine::Held::run) != play.held.end())
      continue;
    run.ticket = run.ledger.new_ticket();
    if (play.acquire(number)) play.started[number].reset();
  }
  return play;
}

TEST(QueueForecast, ExactTimesGiveExactStartsUnderTheLedgersOwnPolicy) {
  int waited = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    PlayedMachine play = play_of(seed);
    const auto entries = *play.runs.front()->ledger.entries();
    std::vector<EntryOutlook> outlooks;
    std::vector<RunOutlook> known;
    for (const auto& run : play.runs) known.push_back({run->tasks, run->takes});
    for (const auto& entry : entries) {
      EntryOutlook outlook{static_cast<std::size_t>(entry.holder.pid - 100), {}};
      for (const auto& held : play.held)
        if (held.id == entry.id) outlook.left = held.ends;
      outlooks.push_back(outlook);
    }
    const auto forecasts = forecast_starts(play.host, entries, outlooks, known);
    for (int second = 0; second < 400; ++second) play.advance();
    std::size_t at = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!entries[i].waiting) continue;
      ++waited;
      const auto& forecast = forecasts.at(at++);
      EXPECT_EQ(forecast.start, play.started[outlooks[i].run]) << entries[i].label;
    }
    EXPECT_EQ(at, forecasts.size());
  }
  EXPECT_GT(waited, 500);
}

class QueueForecastTest : public testing::Test {
 protected:
  std::vector<StartForecast> forecast(const std::vector<EntryOutlook>& outlooks,
                                      const std::vector<RunOutlook>& known) {
    return forecast_starts(host_of_cores(4), *a.ledger.entries(), outlooks, known);
  }
  FakeMachine machine;
  PlayedRun a{machine, 1, request_of(3, 0, "a")}, b{machine, 2, request_of(2, 0, "b")},
      c{machine, 3, request_of(1, 0, "c")};
  const Host host = host_of_cores(4);
};

TEST_F(QueueForecastTest, WhatNothingIsKnownOfIsSaidToBe) {
  ASSERT_TRUE(a.ledger.acquire(host, a.ask, {}));
  ASSERT_FALSE(b.ledger.acquire(host, b.ask, b.ledger.new_ticket()));
  ASSERT_FALSE(c.ledger.acquire(host, c.ask, c.ledger.new_ticket())) << "b is before it";
  const auto unknown = forecast({{0, {}}, {1, {}}, {2, {}}}, {{}, {}, {}});
  ASSERT_EQ(unknown.size(), 2U);
  EXPECT_EQ(unknown[0].start, std::nullopt);
  EXPECT_EQ(unknown[0].by, std::vector<std::size_t>{0});
  EXPECT_EQ(unknown[1].start, std::nullopt) << "nobody passes the first";

  const auto known = forecast({{0, seconds(30)}, {1, {}}, {2, {}}}, {{}, {}, {}});
  EXPECT_EQ(known[0].start, seconds(30));
  EXPECT_EQ(known[0].by, std::vector<std::size_t>{0});
  EXPECT_EQ(known[1].start, seconds(30)) << "it fits beside b, however long that takes";
}

TEST_F(QueueForecastTest, ARunOfGreaterPriorityKeepsWhatItHasUntilItIsDone) {
  a.ask.priority = 1;
  ASSERT_TRUE(a.ledger.acquire(host, a.ask, {}));
  ASSERT_FALSE(b.ledger.acquire(host, b.ask, b.ledger.new_ticket()));
  const std::vector<EntryOutlook> outlooks{{0, seconds(30)}, {1, {}}};
  EXPECT_EQ(forecast(outlooks, {{2, seconds(100)}, {}})[0].start, seconds(230));
  EXPECT_EQ(forecast(outlooks, {{2, {}}, {}})[0].start, std::nullopt);
}

TEST_F(QueueForecastTest, ARunThatComesBackAsksForWholeGpusAgain) {
  Host with_gpus = host;
  for (int index : {0, 1})
    with_gpus.total.devices.push_back({.uuid = "GPU-" + std::to_string(index),
                                       .index = index,
                                       .node = 0,
                                       .memory = 8 * kGi,
                                       .slots = 7,
                                       .size = 7});
  for (PlayedRun* run : {&a, &b, &c}) {
    run->ask.resources = {};
    run->ask.resources.set(Known::gpu, 2);
    run->ask.priority = run == &c ? 0 : 1;
  }
  ASSERT_TRUE(a.ledger.acquire(with_gpus, a.ask, {}));
  ASSERT_FALSE(b.ledger.acquire(with_gpus, b.ask, b.ledger.new_ticket()));
  ASSERT_FALSE(c.ledger.acquire(with_gpus, c.ask, c.ledger.new_ticket()));
  const auto forecasts = forecast_starts(
      with_gpus, *a.ledger.entries(), std::vector<EntryOutlook>{{0, seconds(10)}, {1, {}}, {2, {}}},
      std::vector<RunOutlook>{{1, seconds(10)}, {0, seconds(5)}, {}});
  EXPECT_EQ(forecasts[0].start, seconds(10));
  EXPECT_EQ(forecasts[1].start, seconds(25)) << "a comes back before it, for one task more";
}

TEST_F(QueueForecastTest, ARunWithoutEndIsPlayedWithinBounds) {
  a.ask.priority = 1;
  ASSERT_TRUE(a.ledger.acquire(host, a.ask, {}));
  ASSERT_FALSE(b.ledger.acquire(host, b.ask, b.ledger.new_ticket()));
  const auto endless = forecast({{0, seconds(1)}, {1, {}}}, {{1'000'000'000, Duration(1)}, {}});
  EXPECT_EQ(endless[0].start, std::nullopt);
  const auto forever = forecast({{0, seconds(1)}, {1, {}}}, {{2, Duration::max()}, {}});
  EXPECT_EQ(forever[0].start, std::nullopt);
}

}  // namespace
}  // namespace berth::machine
