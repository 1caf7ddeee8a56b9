// Runs that get help from another cluster, on a fake world: when it comes, goes, and dies.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "berth/testing/fake_cluster.h"
#include "berth/testing/run.h"

namespace berth::run {
namespace {

using testing::World;

/// A pool that the test goes on watching after the loop has taken it.
class Lent final : public cluster::Cluster {
 public:
  explicit Lent(cluster::FakePool& pool) : pool_(pool) {}
  Result<std::vector<cluster::Offer>> offers() override { return pool_.offers(); }
  Result<cluster::Alloc> accept(const cluster::Offer& offer,
                                const std::optional<machine::Request>& part,
                                const cluster::Labels& labels) override {
    return pool_.accept(offer, part, labels);
  }
  Result<std::optional<Mono>> keepalive(machine::AllocId id) override {
    return pool_.keepalive(id);
  }
  Result<cluster::Alloc> inspect(machine::AllocId id) override { return pool_.inspect(id); }
  Status free(machine::AllocId id) override { return pool_.free(id); }
  Result<cluster::Alloc> allocate(const cluster::Wish& wish) override {
    return pool_.allocate(wish);
  }
  Mono retry_at() override { return pool_.retry_at(); }

 private:
  cluster::FakePool& pool_;
};

class Stealers : public ::testing::Test {
 protected:
  Stealers() : pool_(world_.env, {.lease = std::chrono::seconds(10)}) {
    pool_.add(cluster::block_of(6, 8LL << 30));
    world_.context.sources = [this](const store::RunRecord&) -> Result<Sources> {
      Sources sources;
      sources.auxiliary.push_back({.name = "lab", .cluster = std::make_unique<Lent>(pool_)});
      return sources;
    };
    world_.env.program = [](const os::SpawnSpec&) {
      return os::FakeProgram{.duration = std::chrono::seconds(2)};
    };
  }

  std::vector<store::TaskRecord> tasks(RunId run) { return *world_.context.store->tasks(run); }
  /// By the machine on which they ran last.
  std::map<std::string, int> tasks_by_host(RunId run) {
    std::map<std::string, int> hosts;
    for (const auto& task : tasks(run)) ++hosts[task.host];
    return hosts;
  }
  bool all_free() {
    return std::ranges::all_of(*pool_.offers(), [](const auto& offer) {
      return offer.free.resources == offer.total.resources;
    });
  }

  World world_;
  cluster::FakePool pool_;
};

TEST_F(Stealers, ClustersAreTendedWhenTheyWantToBe) {
  std::vector<Mono> at;
  world_.context.sources = [&](const store::RunRecord&) -> Result<Sources> {
    Sources sources;
    sources.auxiliary.push_back({.name = "lab", .cluster = std::make_unique<Lent>(pool_)});
    sources.auxiliary.back().tend = [&] {
      at.push_back(world_.env.now());
      return std::optional(at.back() + std::chrono::milliseconds(300));
    };
    return sources;
  };
  const auto run = world_.submit_trials(2);
  ASSERT_TRUE(drive(world_.context, run.name, world_.observer));
  ASSERT_GE(at.size(), 5U);  // two seconds and more
  for (std::size_t i = 1; i < at.size(); ++i)
    EXPECT_EQ(at[i] - at[i - 1], std::chrono::milliseconds(300));
}

TEST_F(Stealers, ComeWithinASecondShareTheWorkAndGo) {
  const auto run = world_.submit_trials(20);
  const auto done = drive(world_.context, run.name, world_.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts, (store::Counts{.done = 20}));
  const auto hosts = tasks_by_host(run.id);
  EXPECT_GE(hosts.at("m1"), 10);
  EXPECT_EQ(hosts.size(), 2U);
  for (const auto& task : tasks(run.id)) {
    EXPECT_EQ(task.attempts, 1);
    if (task.number.value <= 8) {
      EXPECT_LT(*task.started - run.created, std::chrono::seconds(1));
    }
  }
  EXPECT_TRUE(all_free());
  EXPECT_EQ(world_.env.descriptors(), 0U);
}

TEST_F(Stealers, AreFreedAsSoonAsThereIsNothingLeftForThem) {
  // One long task stays behind on this machine.
  world_.env.program = [](const os::SpawnSpec& spec) {
    return os::FakeProgram{.duration = std::chrono::seconds(spec.argv.at(1) == "1" ? 1000 : 2)};
  };
  const auto run = world_.submit_trials(8);
  std::optional<Mono> freed;
  world_.env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call == "wait" && !freed && world_.env.now() > Mono(std::chrono::seconds(1)) && all_free())
      freed = world_.env.now();
    return std::nullopt;
  };
  const auto done = drive(world_.context, run.name, world_.observer);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->counts.done, 8);
  ASSERT_TRUE(freed);
  EXPECT_LT(*freed, Mono(std::chrono::seconds(5)));
}

TEST_F(Stealers, WhatALostOneRanIsRunAgainOnceEach) {
  const auto run = world_.submit_trials(20);
  bool lost = false;
  world_.env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call == "wait" && !lost && world_.env.now() > Mono(std::chrono::seconds(3))) {
      lost = true;
      pool_.lose("m1");
    }
    return std::nullopt;
  };
  const auto done = drive(world_.context, run.name, world_.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts, (store::Counts{.done = 20}));
  int again = 0;
  for (const auto& task : tasks(run.id)) {
    ASSERT_LE(task.attempts, 2);
    again += static_cast<int>(task.attempts) - 1;
    const auto attempts = world_.context.store->attempts(run.id, task.number).value();
    if (task.attempts == 2) {
      EXPECT_EQ(attempts.at(0).cause, exec::Cause::worker_lost);
      EXPECT_EQ(attempts.at(1).host, "fake");
    }
  }
  EXPECT_EQ(again, 6);
  EXPECT_EQ(world_.env.descriptors(), 0U);
}

TEST_F(Stealers, ALeaseIsKeptForAsLongAsItIsNeeded) {
  world_.env.program = [](const os::SpawnSpec&) {
    return os::FakeProgram{.duration = std::chrono::seconds(100)};
  };
  const auto run = world_.submit_trials(8);
  const auto done = drive(world_.context, run.name, world_.observer);
  ASSERT_TRUE(done);
  for (const auto& task : tasks(run.id)) EXPECT_EQ(task.attempts, 1);
}

TEST_F(Stealers, ARunnerThatSleptPastTheLeaseTakesItsTasksForLost) {
  world_.env.program = [](const os::SpawnSpec&) {
    return os::FakeProgram{.duration = std::chrono::seconds(30)};
  };
  const auto run = world_.submit_trials(8);
  bool slept = false;
  world_.env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call == "wait" && !slept && world_.env.now() > Mono(std::chrono::seconds(3))) {
      slept = true;
      world_.env.freeze(std::chrono::seconds(11));
    }
    return std::nullopt;
  };
  const auto done = drive(world_.context, run.name, world_.observer);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->counts, (store::Counts{.done = 8}));
  int again = 0;
  for (const auto& task : tasks(run.id)) again += static_cast<int>(task.attempts) - 1;
  EXPECT_EQ(again, 6);
}

TEST_F(Stealers, HelpThatFailsIsToldAndDoesNotEndTheRun) {
  world_.context.sources = [this](const store::RunRecord&) -> Result<Sources> {
    class Broken final : public cluster::FakePool {
     public:
      using FakePool::FakePool;
      Result<cluster::Alloc> allocate(const cluster::Wish&) override {
        return fail(ErrorKind::io, "the door is shut");
      }
    };
    Sources sources;
    sources.auxiliary.push_back(
        {.name = "lab", .cluster = std::make_unique<Broken>(world_.env, Broken::Options{})});
    return sources;
  };
  const auto run = world_.submit_trials(6);
  const auto done = drive(world_.context, run.name, world_.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->state, store::RunState::done);
  EXPECT_EQ(std::ranges::count(world_.observer.notes, "no help from lab: the door is shut"), 1);
}

}  // namespace
}  // namespace berth::run
