// What an agent does when its lease ends, on a fake clock.
#include "berth/agent/agent.h"

#include "berth/testing/agent.h"

namespace berth::agent {
namespace {

using std::chrono::seconds;

TEST(Agent, WithItsLeaseEverythingEnds) {
  FakeWorld world;
  world.options.lease = seconds(10);
  world.env.program = [](const os::SpawnSpec&) { return takes(std::chrono::hours(1)); };
  world.open();
  auto client = world.attach(1);
  Reports reports;
  client->send(launch_of(1));
  world.run(client.get(), reports, [&] { return world.env.now() > Mono(seconds(100)); });
  ASSERT_TRUE(world.agent) << "keepalives hold it";
  client.reset();
  world.run(nullptr, reports, [&] { return !world.agent; });
  EXPECT_LE(world.env.now(), Mono(seconds(112)));
  EXPECT_EQ(world.env.processes_alive(), 0U);
  client = world.attach(2);
  ASSERT_TRUE(client->lost());
  EXPECT_EQ(client->lost()->kind, ErrorKind::not_found);
}

TEST(Agent, OneThatOutlivesItsRunnerGoesOnUntilNothingRuns) {
  FakeWorld world;
  world.options.lease = seconds(10);
  world.options.outlive = true;
  world.env.program = [](const os::SpawnSpec&) { return takes(std::chrono::hours(1), "end\n"); };
  world.open();
  auto client = world.attach(1);
  Reports reports;
  client->send(launch_of(1));
  world.run(client.get(), reports, [&] { return reports.started.size() == 1; });
  client->acknowledge();
  world.turn(client.get(), reports);
  client.reset();
  world.run(nullptr, reports, [&] { return !world.agent; });
  EXPECT_GE(world.env.now(), Mono(std::chrono::hours(1)));
  const auto unacknowledged = read_journal(world.env, world.options.directory);
  ASSERT_TRUE(unacknowledged) << unacknowledged.error().message;
  Reports late;
  late.take(*unacknowledged);
  EXPECT_TRUE(late.started.empty());
  EXPECT_EQ(late.output[1], "end\n");
  EXPECT_EQ(late.ended[1], 1);
  EXPECT_TRUE(forget_agent(world.env, world.options.directory));
  EXPECT_TRUE(world.env.list(world.options.directory)->empty());
}

/// By a seed of ./dev simulate: what was done ran again, after the disk had been full for long.
TEST(Agent, WhatCouldNotBeWrittenIsNotGivenUpWithTheLease) {
  bool full = false;  // outlives the world, whose agent writes as it goes
  FakeWorld world;
  world.options.lease = seconds(10);
  world.options.outlive = true;
  world.env.program = [](const os::SpawnSpec&) { return takes(seconds(20)); };
  world.env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (!full || call != "write_all") return std::nullopt;
    return Error{ErrorKind::full, "no space left"};
  };
  world.open();
  auto client = world.attach(1);
  Reports reports;
  client->send(launch_of(1));
  world.run(client.get(), reports, [&] { return reports.started[1] == 1; });
  client.reset();
  full = true;
  world.run(nullptr, reports, [&] { return world.env.now() > Mono(seconds(300)); });
  ASSERT_TRUE(world.agent);
  full = false;
  client = world.attach(2);
  world.run(client.get(), reports, [&] { return reports.ended[1] > 0; });
  EXPECT_EQ(reports.ends[1].exit_code, 0);
  world.run(client.get(), reports, [&] {
    client->acknowledge();
    return !world.agent;
  });
}

/// One whose journal cannot be read, from a moment on.
struct Unreadable : FakeWorld {
  Unreadable() {
    options.outlive = true;
    env.program = [](const os::SpawnSpec&) { return takes(seconds(300)); };
    env.fault = [this](std::string_view call) -> std::optional<Error> {
      if (call == "signal") env.stops = 1;  // as what a process sends another arrives
      if (!fails || call != "read_at") return std::nullopt;
      return Error{ErrorKind::io, "input/output error"};
    };
    open();
    const auto client = attach(1);
    client->send(launch_of(1));
    run(client.get(), reports, [&] { return reports.started[1] == 1; });
  }
  bool fails = false;
  Reports reports;
};

TEST(Agent, OneThatCannotReadItsJournalForAMomentIsNotLost) {
  Unreadable world;
  world.fails = true;
  const auto client = world.attach(2);
  const Mono begun = world.env.now();
  world.run(client.get(), world.reports, [&] { return world.env.now() - begun > seconds(30); });
  EXPECT_FALSE(client->lost());
  world.fails = false;
  world.run(client.get(), world.reports, [&] { return world.reports.ended[1] > 0; });
  EXPECT_EQ(world.reports.ends[1].exit_code, 0);
}

TEST(Agent, OneThatCannotReadItsJournalForLongIsEndedBeforeItIsLost) {
  Unreadable world;
  world.fails = true;
  const auto client = world.attach(2);
  const Mono begun = world.env.now();
  world.run(client.get(), world.reports, [&] { return client->lost().has_value(); });
  EXPECT_FALSE(world.agent) << "its task does not go on beside the next attempt";
  EXPECT_EQ(world.env.processes_alive(), 0U);
  EXPECT_GE(world.env.now() - begun, seconds(60));
  EXPECT_LE(world.env.now() - begun, seconds(70));
}

TEST(Agent, FrozenBeyondItsLeaseItSaysNothingAnyMore) {
  for (const auto freeze_s : {5, 11}) {
    FakeWorld world;
    world.options.lease = seconds(10);
    world.env.program = [](const os::SpawnSpec&) { return takes(seconds(4)); };
    world.open();
    auto client = world.attach(1);
    Reports reports;
    client->send(launch_of(1));
    world.run(client.get(), reports, [&] { return reports.started.size() == 1; });
    world.frozen = true;  // its task ends meanwhile, and keepalives come
    const Mono thaw = world.env.now() + seconds(freeze_s);
    world.run(client.get(), reports, [&] { return world.env.now() >= thaw; });
    world.frozen = false;
    for (int i = 0; i < 10; ++i) world.turn(client.get(), reports);
    EXPECT_EQ(reports.ended.size(), freeze_s < 10 ? 1U : 0U);
    EXPECT_EQ(world.agent != nullptr, freeze_s < 10);
    EXPECT_EQ(client->lost().has_value(), freeze_s > 10);
    if (client->lost()) {
      EXPECT_EQ(client->lost()->kind, ErrorKind::stale);
    }
  }
}

TEST(Agent, ASuspendedMachineCountsToo) {
  FakeWorld world;
  world.options.lease = seconds(10);
  world.env.program = [](const os::SpawnSpec&) { return takes(seconds(4)); };
  world.open();
  const auto client = world.attach(1);
  Reports reports;
  client->send(launch_of(1));
  world.run(client.get(), reports, [&] { return reports.started.size() == 1; });
  world.env.suspended = seconds(60);
  const Mono awake = world.env.now();
  world.run(nullptr, reports, [&] { return world.agent == nullptr; });
  EXPECT_LE(world.env.now(), awake + seconds(1));
  EXPECT_EQ(world.env.processes_alive(), 0U);
  const auto unacknowledged = read_journal(world.env, world.options.directory);
  ASSERT_TRUE(unacknowledged);
  Reports left;
  left.take(*unacknowledged);
  EXPECT_TRUE(left.ended.empty());
}

TEST(Agent, AfterItsLeaseItStartsNothingThatWaits) {
  FakeWorld world;
  world.options.lease = seconds(10);
  world.env.program = [](const os::SpawnSpec&) { return takes(seconds(4)); };
  world.open();
  const auto client = world.attach(1);
  Reports reports;
  auto next = launch_of(2);
  next.behind = {1};
  next.waits_most = std::chrono::hours(1);
  client->send(launch_of(1));
  client->send(next);
  world.run(client.get(), reports, [&] { return reports.started.size() == 1; });
  const auto spawned = world.env.spawned();
  world.frozen = true;  // what runs ends meanwhile
  const Mono thaw = world.env.now() + seconds(30);
  world.run(nullptr, reports, [&] { return world.env.now() >= thaw; });
  world.frozen = false;
  world.run(nullptr, reports, [&] { return world.agent == nullptr; });
  EXPECT_EQ(world.env.spawned(), spawned);
  EXPECT_LE(world.env.now(), thaw + seconds(1));
}

TEST(Agent, ALeaseThatEndsWhileItWritesIsNoticed) {
  FakeWorld world;
  world.options.lease = seconds(10);
  world.env.program = [](const os::SpawnSpec& spec) {
    return takes(spec.argv[0] == "brief" ? Duration(seconds(8)) : Duration(std::chrono::hours(5)));
  };
  world.open();
  auto client = world.attach(1);
  Reports reports;
  client->send(launch_of(1));
  client->send(launch_of(2, {"brief"}));
  world.run(client.get(), reports, [&] { return reports.started.size() == 2; });
  client.reset();
  for (int i = 0; i < 3; ++i) world.turn(nullptr, reports);
  bool hung = false;
  world.env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call == "write_all" && !std::exchange(hung, true)) world.env.freeze(seconds(30));
    return std::nullopt;
  };
  world.run(nullptr, reports,
            [&] { return world.agent == nullptr || world.env.now() > Mono(seconds(60)); });
  EXPECT_TRUE(hung);
  EXPECT_EQ(world.agent, nullptr) << "and its task runs on";
  EXPECT_EQ(world.env.processes_alive(), 0U);
}

}  // namespace
}  // namespace berth::agent
