// Agents and their allocs: one that never got it, and one that gives it back before its runner has
// heard of everything.
#include <gtest/gtest.h>

#include "berth/agent/journal.h"
#include "berth/machine/ledger/ledger.h"
#include "berth/testing/agent.h"

namespace berth::agent {
namespace {

using std::chrono::seconds;

TEST(Agent, OneElsewhereStaysToTellWhatCameOfItsTasks) {
  FakeWorld world;
  world.options.outlive = true;
  world.options.with = "/runs/a-1";
  world.env.program = [](const os::SpawnSpec&) { return takes(seconds(10)); };
  world.open();
  Reports reports;
  auto client = world.attach(1);
  client->send(launch_of(1));
  world.run(client.get(), reports, [&] { return reports.started[1] == 1; });
  client.reset();  // its connection broke, for longer than the lease
  const Mono begun = world.env.now();
  world.run(nullptr, reports, [&] { return world.env.now() - begun > std::chrono::hours(1); });
  ASSERT_TRUE(world.agent);
  client = world.attach(2);
  client->send(launch_of(2));
  world.run(client.get(), reports, [&] { return reports.ended[1] == 1 && reports.ended[2] == 1; });
  EXPECT_FALSE(client->lost()) << client->lost()->message;
  EXPECT_EQ(reports.ends[1].cause, exec::Cause::ok);
  EXPECT_EQ(reports.ends[2].cause, exec::Cause::worker_lost) << "it has nothing left to run it on";
  client->acknowledge();
  world.run(client.get(), reports, [&] { return !world.agent; });
  EXPECT_FALSE(world.env.status("/runs/a-1"));
}

/// By a seed of ./dev simulate: it held its part of the machine for a day.
TEST(Agent, OneThatRetiresWhileTheLedgerIsFullReleasesItsAllocLater) {
  bool full = false;  // outlives the world, whose agent writes as it goes
  FakeWorld world;
  auto ledger = machine::Ledger::open(world.env, "/ledger");
  const auto alloc = ledger->acquire({cores(4)}, {cores(2).resources, "a-1"}, {});
  world.options.ledger_directory = "/ledger";
  world.options.alloc = alloc->id;
  world.options.outlive = true;
  world.options.with = "/runs/a-1";
  world.env.program = [](const os::SpawnSpec&) { return takes(seconds(3)); };
  world.open();
  Reports reports;
  auto client = world.attach(1);
  client->send(launch_of(1));
  world.run(client.get(), reports, [&] { return reports.started[1] == 1; });
  client.reset();
  full = true;
  world.env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (!full || call != "replace_file") return std::nullopt;
    return Error{ErrorKind::full, "no space left"};
  };
  const Mono begun = world.env.now();
  world.run(nullptr, reports, [&] { return world.env.now() - begun > std::chrono::minutes(5); });
  EXPECT_EQ(ledger->entries()->size(), 1U);
  full = false;
  world.run(nullptr, reports, [&] { return world.env.now() - begun > std::chrono::minutes(6); });
  EXPECT_TRUE(ledger->entries()->empty());
  EXPECT_TRUE(world.agent) << "it stays to report the results of its task";
}

TEST(Agent, OneElsewhereThatNobodyAsksEndsInTheEnd) {
  FakeWorld world;
  world.options.outlive = true;
  world.options.with = "/runs/a-1";
  world.open();
  Reports reports;
  auto client = world.attach(1);
  client->send(launch_of(1));
  world.run(client.get(), reports,
            [&] { return reports.started[1] == 1 || reports.ended[1] == 1; });
  client.reset();
  const Mono begun = world.env.now();
  world.run(nullptr, reports, [&] { return !world.agent; });
  EXPECT_GT(world.env.now() - begun, std::chrono::hours(23));
  EXPECT_FALSE(world.env.status("/runs/a-1"));
}

TEST(Agent, WithoutItsAllocItTakesNobody) {
  FakeWorld world;
  auto ledger = machine::Ledger::open(world.env, "/ledger");
  const auto alloc = ledger->acquire({cores(4)}, {cores(2).resources, "a-1"}, {});
  ASSERT_TRUE(alloc);
  world.options.ledger_directory = "/ledger";
  world.options.alloc = alloc->id;
  world.open();
  const auto client = world.attach(1);
  Reports reports;
  world.run(client.get(), reports, [&] { return client->ready(); });
  client->finish();
  world.run(client.get(), reports, [&] { return !world.agent; });
  EXPECT_TRUE(ledger->entries()->empty()) << "it gave its alloc back";
  world.open();
  const auto late = world.attach(2);
  world.run(late.get(), reports, [&] { return late->lost().has_value() && !world.agent; });
  EXPECT_EQ(late->lost()->kind, ErrorKind::stale) << "and it does not wait for its lease to end";
}

TEST(Agent, WhoseAllocIsNobodysAnyMoreWaitsForNobody) {
  FakeWorld world;
  auto ledger = machine::Ledger::open(world.env, "/ledger");
  const auto alloc = ledger->acquire({cores(4)}, {cores(2).resources, "a-1"}, {});
  ASSERT_TRUE(alloc);
  world.options.ledger_directory = "/ledger";
  world.options.alloc = alloc->id;
  world.open();
  Reports reports;
  const Mono begun = world.env.now();
  world.run(nullptr, reports, [&] { return world.env.now() - begun > seconds(5); });
  ASSERT_TRUE(world.agent) << "who started it may be slow to hand the alloc over";
  ASSERT_TRUE(ledger->release(alloc->id));
  world.run(nullptr, reports, [&] { return !world.agent; });
  EXPECT_LE(world.env.now() - begun, seconds(8));
}

/// An agent with an alloc of its own, whose only task takes three seconds.
class AgentWithAlloc : public ::testing::Test {
 protected:
  AgentWithAlloc() {
    const auto alloc = ledger_->acquire({cores(4)}, {cores(2).resources, "a-1"}, {});
    world_.options.ledger_directory = "/ledger";
    world_.options.alloc = alloc->id;
    world_.options.outlive = true;
    world_.env.program = [](const os::SpawnSpec&) { return takes(seconds(3)); };
    world_.open();
    client_ = world_.attach(1);
    client_->send(launch_of(1));
    world_.run(client_.get(), reports_, [&] { return reports_.started[1] == 1; });
  }
  FakeWorld world_;
  Result<machine::Ledger> ledger_ = machine::Ledger::open(world_.env, "/ledger");
  std::unique_ptr<AgentClient> client_;
  Reports reports_;
};

TEST_F(AgentWithAlloc, WithoutRunnerAndTasksItHoldsNothing) {
  const Mono begun = world_.env.now();
  client_.reset();  // its runner was killed
  world_.run(nullptr, reports_, [&] { return world_.env.now() - begun >= seconds(2); });
  ASSERT_TRUE(world_.agent) << "its task goes on";
  EXPECT_EQ(ledger_->entries()->size(), 1U);
  world_.run(nullptr, reports_, [&] { return !world_.agent; });
  EXPECT_LE(world_.env.now() - begun, seconds(4)) << "it waits for no lease";
  EXPECT_TRUE(ledger_->entries()->empty());
  const auto unacknowledged = read_journal(world_.env, world_.options.directory);
  ASSERT_TRUE(unacknowledged) << unacknowledged.error().message;
  reports_.take(*unacknowledged);
  EXPECT_EQ(reports_.ended[1], 1) << "a later runner reads what came of it";
}

TEST_F(AgentWithAlloc, WhatIsRetainedWaitsForItsTime) {
  world_.run(client_.get(), reports_, [&] { return reports_.ended[1] == 1; });
  client_->acknowledge();
  client_->retain(std::chrono::minutes(10));
  client_.reset();
  const Mono begun = world_.env.now();
  world_.run(nullptr, reports_, [&] { return !world_.agent; });
  EXPECT_GE(world_.env.now() - begun, std::chrono::minutes(9));
}

}  // namespace
}  // namespace berth::agent
