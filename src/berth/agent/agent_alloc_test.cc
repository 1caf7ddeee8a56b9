// Agents and their allocs: one that never got it, and one that gives it back before its runner has
// heard of everything.
#include <gtest/gtest.h>

#include "berth/agent/agent_testing.h"
#include "berth/agent/journal.h"
#include "berth/machine/ledger.h"

namespace berth::agent {
namespace {

using std::chrono::seconds;

TEST(Agent, OneElsewhereStaysToTellWhatCameOfItsTasks) {
  FakeWorld world;
  world.options.outlive = true;
  world.options.with = "/runs/a-1";
  world.env.program = [](const os::SpawnSpec&) { return takes(seconds(10)); };
  world.open();
  Heard heard;
  auto link = world.attach(1);
  link->tell(launch_of(1));
  world.run(link.get(), heard, [&] { return heard.started[1] == 1; });
  link.reset();  // its connection broke, for longer than the lease
  const Mono begun = world.env.now();
  world.run(nullptr, heard, [&] { return world.env.now() - begun > std::chrono::hours(1); });
  ASSERT_TRUE(world.agent);
  link = world.attach(2);
  link->tell(launch_of(2));
  world.run(link.get(), heard, [&] { return heard.ended[1] == 1 && heard.ended[2] == 1; });
  EXPECT_FALSE(link->lost()) << link->lost()->message;
  EXPECT_EQ(heard.ends[1].cause, exec::Cause::ok);
  EXPECT_EQ(heard.ends[2].cause, exec::Cause::worker_lost) << "it has nothing left to run it on";
  link->acknowledge();
  world.run(link.get(), heard, [&] { return !world.agent; });
  EXPECT_FALSE(world.env.status("/runs/a-1"));
}

TEST(Agent, OneElsewhereThatNobodyAsksEndsInTheEnd) {
  FakeWorld world;
  world.options.outlive = true;
  world.options.with = "/runs/a-1";
  world.open();
  Heard heard;
  auto link = world.attach(1);
  link->tell(launch_of(1));
  world.run(link.get(), heard, [&] { return heard.started[1] == 1 || heard.ended[1] == 1; });
  link.reset();
  const Mono begun = world.env.now();
  world.run(nullptr, heard, [&] { return !world.agent; });
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
  const auto link = world.attach(1);
  Heard heard;
  world.run(link.get(), heard, [&] { return link->ready(); });
  link->finish();
  world.run(link.get(), heard, [&] { return !world.agent; });
  EXPECT_TRUE(ledger->entries()->empty()) << "it gave its alloc back";
  world.open();
  const auto late = world.attach(2);
  world.run(late.get(), heard, [&] { return late->lost().has_value() && !world.agent; });
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
  Heard heard;
  const Mono begun = world.env.now();
  world.run(nullptr, heard, [&] { return world.env.now() - begun > seconds(5); });
  ASSERT_TRUE(world.agent) << "who started it may be slow to hand the alloc over";
  ASSERT_TRUE(ledger->release(alloc->id));
  world.run(nullptr, heard, [&] { return !world.agent; });
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
    link_ = world_.attach(1);
    link_->tell(launch_of(1));
    world_.run(link_.get(), heard_, [&] { return heard_.started[1] == 1; });
  }
  FakeWorld world_;
  Result<machine::Ledger> ledger_ = machine::Ledger::open(world_.env, "/ledger");
  std::unique_ptr<Link> link_;
  Heard heard_;
};

TEST_F(AgentWithAlloc, WithoutRunnerAndTasksItHoldsNothing) {
  const Mono begun = world_.env.now();
  link_.reset();  // its runner was killed
  world_.run(nullptr, heard_, [&] { return world_.env.now() - begun >= seconds(2); });
  ASSERT_TRUE(world_.agent) << "its task goes on";
  EXPECT_EQ(ledger_->entries()->size(), 1U);
  world_.run(nullptr, heard_, [&] { return !world_.agent; });
  EXPECT_LE(world_.env.now() - begun, seconds(4)) << "it waits for no lease";
  EXPECT_TRUE(ledger_->entries()->empty());
  const auto remains = read_journal(world_.env, world_.options.directory);
  ASSERT_TRUE(remains) << remains.error().message;
  heard_.take(remains->messages);
  EXPECT_EQ(heard_.ended[1], 1) << "a later runner reads what came of it";
}

TEST_F(AgentWithAlloc, WhatIsRetainedWaitsForItsTime) {
  world_.run(link_.get(), heard_, [&] { return heard_.ended[1] == 1; });
  link_->acknowledge();
  link_->retain(std::chrono::minutes(10));
  link_.reset();
  const Mono begun = world_.env.now();
  world_.run(nullptr, heard_, [&] { return !world_.agent; });
  EXPECT_GE(world_.env.now() - begun, std::chrono::minutes(9));
}

}  // namespace
}  // namespace berth::agent
