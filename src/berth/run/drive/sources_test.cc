// Sources that refuse, for a while or for ever, and starts that fail: how long a run goes on
// trying, on a paused clock, and what it says at its end.
#include <gtest/gtest.h>

#include <algorithm>

#include "berth/run/state/clusters.h"
#include "berth/testing/fake_cluster.h"
#include "berth/testing/run.h"

namespace berth::run {
namespace {

using testing::World;
using namespace std::chrono_literals;

/// Answers with an error for as long as the test has one for it.
class Moody final : public cluster::FakePool {
 public:
  using Answer = std::function<std::optional<Error>()>;
  Moody(os::Env& env, Answer answer) : FakePool(env, {}), answer_(std::move(answer)) {
    add(cluster::block_of(6, 8LL << 30));
  }
  Result<cluster::Alloc> allocate(const cluster::Wish& wish) override {
    if (auto error = answer_()) return std::unexpected(*std::move(error));
    return FakePool::allocate(wish);
  }

 private:
  Answer answer_;
};

class SourcesTest : public ::testing::Test {
 protected:
  SourcesTest() {
    world_.env.program = [](const os::SpawnSpec&) { return os::FakeProgram{.duration = 2s}; };
    world_.env.fault = [this](std::string_view) -> std::optional<Error> {
      if (!world_.observer.last.waiting_for.empty()) waited_for_ = world_.observer.last.waiting_for;
      return std::nullopt;
    };
  }
  /// The main source is elsewhere; of the others this process is the worker.
  void sources(Moody::Answer main, std::optional<Moody::Answer> other = {}) {
    world_.context.sources = [this, main = std::move(main),
                              other = std::move(other)](const auto&) -> Result<Sources> {
      Sources sources;
      sources.main = Source{.name = "lab",
                            .cluster = std::make_unique<Moody>(world_.env, main),
                            .start_worker = [](const auto&) { return nullptr; }};
      if (other)
        sources.auxiliary.push_back(
            {.name = "aux", .cluster = std::make_unique<Moody>(world_.env, *other)});
      return sources;
    };
  }
  Moody::Answer always(ErrorKind kind, std::string message) {
    return [error = Error{kind, std::move(message)}] { return std::optional(error); };
  }
  std::ptrdiff_t notes(std::string_view part) {
    return std::ranges::count_if(world_.observer.notes, [&](const auto& note) {
      return note.find(part) != std::string::npos;
    });
  }
  Duration passed() { return world_.env.now() - Mono{}; }

  World world_;
  std::string waited_for_;
};

TEST_F(SourcesTest, ARefusalThatWillStayEndsTheRunWithinSecondsAndKeepsItsTasks) {
  for (const auto kind : {ErrorKind::denied, ErrorKind::invalid, ErrorKind::not_found}) {
    sources(always(kind, "no such image"));
    const Mono began = world_.env.now();
    const auto run = world_.submit_trials(4);
    const auto ended = drive(world_.context, run.name, world_.observer);
    ASSERT_FALSE(ended);
    EXPECT_EQ(exit_code(ended.error().kind), 3);
    EXPECT_EQ(ended.error().message, "no such image");
    EXPECT_GE(world_.env.now() - began, 2s) << "tried more than once";
    EXPECT_LE(world_.env.now() - began, 5s);
    EXPECT_EQ(waited_for_, "no such image");
    const auto now = *world_.context.store->find_run(run.name);
    EXPECT_EQ(now.error, "no such image");
    EXPECT_EQ(now.counts.waiting, 4);
  }
}

TEST_F(SourcesTest, ASourceThatCannotBeReachedIsTriedForAMinute) {
  sources(always(ErrorKind::io, "Connection refused"));
  const auto run = world_.submit_trials(4);
  const auto ended = drive(world_.context, run.name, world_.observer);
  ASSERT_FALSE(ended);
  EXPECT_EQ(exit_code(ended.error().kind), 3);
  EXPECT_EQ(ended.error().message, "Connection refused");
  EXPECT_EQ(waited_for_, "Connection refused");
  EXPECT_GE(passed(), 60s);
  EXPECT_LE(passed(), 65s);
  EXPECT_EQ(notes("trying again"), 0) << "what is tried again is the source, not the whole run";
}

TEST_F(SourcesTest, BusyIsWaitedForWithItsReason) {
  sources([this]() -> std::optional<Error> {
    if (passed() < 20min) return Error{ErrorKind::busy, "no room"};
    return Error{ErrorKind::denied, "closed now"};
  });
  const auto run = world_.submit_trials(1);
  const auto ended = drive(world_.context, run.name, world_.observer);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message, "closed now");
  EXPECT_GE(passed(), 20min);
}

TEST_F(SourcesTest, TheRunGoesOnWithoutOneThatRefused) {
  sources(always(ErrorKind::denied, "who are you?"), [this]() -> std::optional<Error> {
    if (passed() < 30s) return Error{ErrorKind::io, "line is cut"};
    return std::nullopt;
  });
  const auto run = world_.submit_trials(8);
  const auto done = drive(world_.context, run.name, world_.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts, (store::Counts{.done = 8}));
  EXPECT_EQ(done->error, "");
  EXPECT_EQ(notes("continues without lab: who are you?"), 1);
  EXPECT_EQ(notes("no help from aux: line is cut"), 1);
}

TEST_F(SourcesTest, WhenNoneIsLeftTheErrorNamesEach) {
  sources(always(ErrorKind::denied, "who are you?"), always(ErrorKind::io, "line is cut"));
  const auto run = world_.submit_trials(2);
  const auto ended = drive(world_.context, run.name, world_.observer);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message, "lab: who are you?; aux: line is cut");
  EXPECT_LE(passed(), 65s);
}

TEST_F(SourcesTest, WhatIsImpossibleForOneIsAskedOfTheNext) {
  sources(always(ErrorKind::impossible, "too large for lab"), [] { return std::nullopt; });
  const auto run = world_.submit_trials(4);
  const auto done = drive(world_.context, run.name, world_.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts.done, 4);
}

TEST_F(SourcesTest, OneThatWorkedBeforeIsWaitedForLonger) {
  bool lost = false;
  sources(always(ErrorKind::denied, "who are you?"), [&]() -> std::optional<Error> {
    if (passed() > 3s && passed() < 10min) return Error{ErrorKind::io, "line is cut"};
    return std::nullopt;
  });
  world_.env.fault = [&](std::string_view call) -> std::optional<Error> {
    // Asleep past the lease of what it holds.
    if (call == "wait" && !lost && passed() > 3s) {
      lost = true;
      world_.env.freeze(11s);
    }
    return std::nullopt;
  };
  const auto run = world_.submit_trials(30);
  const auto done = drive(world_.context, run.name, world_.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts.done, 30);
  EXPECT_GE(passed(), 10min);
}

TEST_F(SourcesTest, WhereNoTaskStartsTheRunEndsAndItsTasksStay) {
  world_.env.fault = [](std::string_view call) -> std::optional<Error> {
    if (call == "spawn") return Error{ErrorKind::full, "no process is left"};
    return std::nullopt;
  };
  const auto run = world_.submit_trials(3);
  const auto ended = drive(world_.context, run.name, world_.observer);
  ASSERT_FALSE(ended);
  EXPECT_EQ(exit_code(ended.error().kind), 3);
  EXPECT_NE(ended.error().message.find("no process is left"), std::string::npos);
  EXPECT_GE(passed(), 30s);
  EXPECT_LE(passed(), 2min);
  EXPECT_EQ(world_.context.store->find_run(run.name)->counts.failed, 0);
  world_.env.fault = {};
  const auto done = drive(world_.context, run.name, world_.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts, (store::Counts{.done = 3}));
}

/// It would have run on this machine instead.
TEST(ClustersOfARun, WhatCannotBeReadForAMomentIsNotTakenForNone) {
  World world;
  const auto run = world.submit_trials(1);
  const ClusterChoice where{.names = {"lab"}, .own = "lab: {kind: ssh, hosts: [a]}"};
  ASSERT_TRUE(keep_clusters(world.context, run, where));
  world.env.fault = [](std::string_view call) -> std::optional<Error> {
    if (call == "read_file") return Error{ErrorKind::io, "no"};
    return std::nullopt;
  };
  const auto sources = sources_of(world.context, run);
  ASSERT_FALSE(sources);
  EXPECT_EQ(sources.error().kind, ErrorKind::io);
}

}  // namespace
}  // namespace berth::run
