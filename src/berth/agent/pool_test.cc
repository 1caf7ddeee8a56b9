#include "berth/agent/pool.h"

#include <gtest/gtest.h>

#include "berth/agent/layout.h"
#include "berth/agent/startup.h"
#include "berth/testing/agent.h"

namespace berth::agent {
namespace {

constexpr auto kLeased = "/home/u/.local/state/berth/places/1";

/// A pool that has leased what an agent holds by now.
struct PoolTest : ::testing::Test {
  PoolTest() {
    world.env.variables = {{"HOME", "/home/u"}, {"BERTH_LEDGER", "/ledger"}};
    pool = *Pool::open(world.env, "/bin/berth-agent");
    world.open();
    const std::string file = agent_file(world.options.directory);
    const AgentFile ready{.process = {1, 2}, .boot = "", .block = cores(4), .alloc = {}};
    EXPECT_TRUE(world.env.replace_file(file, to_json(ready), 0600));
    const auto answer = pool->answer(AskLease{.id = "1", .ask = {}});
    EXPECT_TRUE(std::holds_alternative<Leased>(answer));
  }

  FakeWorld world{{.directory = agent_directory(kLeased), .block = cores(4)}};
  std::unique_ptr<Pool> pool;
  Reports reports;
};

/// By seeds of ./dev simulate: it lived until its lease ended, of a run that was over.
TEST_F(PoolTest, ALeaseThatNoRunnerHasComeForGoesWithTheConnection) {
  const Mono begun = world.env.now();
  pool->let_go();
  world.run(nullptr, reports, [&] { return !world.agent; });
  EXPECT_LT(world.env.now() - begun, std::chrono::seconds(5));
}

TEST_F(PoolTest, ALeaseThatARunnerHasComeForIsTheRunners) {
  auto runner = world.attach(1);
  world.run(runner.get(), reports, [&] { return runner->ready(); });
  pool->let_go();
  for (int i = 0; i < 5; ++i) world.turn(runner.get(), reports);
  ASSERT_FALSE(runner->lost()) << runner->lost()->message;
  runner.reset();
  pool->answer(AskLease{.id = "1", .ask = {}});
  pool->let_go();
  for (int i = 0; i < 5; ++i) world.turn(nullptr, reports);
  EXPECT_TRUE(world.agent) << "a resume may come for it";
}

/// By a seed of ./dev simulate: nothing of the machine was free as long as the pool lived.
TEST_F(PoolTest, WhatCouldNotBeFreedIsFreedLater) {
  auto ledger = machine::Ledger::open(world.env, "/ledger");
  bool full = false;
  world.env.put("/proc/meminfo", "MemTotal: 16000000 kB\n");
  world.env.put("/proc/self/cgroup", "");
  world.env.put("/proc/self/mountinfo", "");
  world.env.program = [&](const os::SpawnSpec&) {
    full = true;
    return os::FakeProgram{.err = "it cannot start", .exit_code = 1};
  };
  world.env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (!full || call != "replace_file") return std::nullopt;
    return Error{ErrorKind::full, "no space left"};
  };
  AskLease wanted{.id = "2", .ask = {}};
  wanted.ask.resources.set(Known::cpu, 1000);
  wanted.ask.label = "a-1";
  EXPECT_TRUE(std::holds_alternative<Error>(pool->answer(wanted)));
  EXPECT_EQ(ledger->entries()->size(), 1U);
  full = false;
  pool->answer(AskOffer{});
  EXPECT_TRUE(ledger->entries()->empty());
  world.env.fault = nullptr;
}

}  // namespace
}  // namespace berth::agent
