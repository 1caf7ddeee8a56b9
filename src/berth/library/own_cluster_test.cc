// Clusters and observers of a program's own that do what they should not: the run ends, or goes on,
// with the reason told.
#include "berth/library/own_cluster.h"

#include <atomic>
#include <stdexcept>
#include <thread>

#include "berth/library/own_worker.h"
#include "berth/testing/posix.h"

namespace berth {
namespace {

Resources cores_of(std::int64_t count) {
  Resources resources;
  resources.set(Known::cpu, 1000 * count);
  return resources;
}

exec::Launch launch_of_one() {
  return {
      .task = {1}, .token = {1}, .request = {}, .argv = {"x"}, .environment = {}, .directory = "/"};
}

/// Its attempts end at once, unless a test says otherwise.
struct Scripted : StaticCluster {
  Scripted() : StaticCluster({{"left", cores_of(1)}, {"right", cores_of(1)}}) {}

  Status begin(const std::string& run) override { return on_begin(run); }
  Result<Alloc> allocate(const Wish& wish) override {
    if (on_allocate) return on_allocate(wish);
    auto alloc = StaticCluster::allocate(wish);
    if (alloc) alloc->lease = lease;
    return alloc;
  }
  Status keepalive(const Alloc& alloc) override { return on_keepalive(alloc); }
  void free(const Alloc& alloc) override {
    StaticCluster::free(alloc);
    ++freed;
  }
  Status start(const Alloc& alloc, const Attempt& attempt, Reporter reporter) override {
    started.push_back(alloc.machine);
    return on_start(attempt, std::move(reporter));
  }
  void stop(const Alloc&, const Attempt&, bool at_once) override {
    stops.push_back(at_once);
    if (at_once && kept) kept->ended({.signal = SIGKILL});
  }

  std::function<Status(const std::string&)> on_begin = [](auto&) { return Status(); };
  std::function<Result<Alloc>(const Wish&)> on_allocate;
  std::function<Status(const Alloc&)> on_keepalive = [](auto&) { return Status(); };
  std::function<Status(const Attempt&, Reporter)> on_start = [](auto&, const Reporter& reporter) {
    end_well(reporter);
    return Status();
  };
  static void end_well(const Reporter& reporter) {
    reporter.output("::berth lo");
    reporter.output("ss=1");
    reporter.ended({});
  }
  std::chrono::milliseconds lease{};
  std::optional<Reporter> kept;
  std::vector<std::string> started;
  std::vector<bool> stops;
  int freed = 0;
};

struct Kept : RunObserver {
  void on_note(const std::string& note) override { notes += note + "\n"; }
  std::string notes;
};

class OwnClusterTest : public os::PosixTest {
 protected:
  OwnClusterTest() {
    auto opened = Runs::open({.state_directory = path("state"), .program = "/no/berth"});
    EXPECT_TRUE(opened) << opened.error().message;
    runs_.emplace(*std::move(opened));
  }
  std::string sweep(std::string_view more = "") {
    const auto file = put("sweep.yaml", fmt::format("name: s\nrun: ./x {{i}}\n{}"
                                                    "params: {{i: [1, 2, 3]}}\n"
                                                    "goal: {{metric: loss, direction: min}}\n",
                                                    more));
    const auto name = runs_->record_file(file, {.elsewhere = true});
    EXPECT_TRUE(name) << name.error().message;
    return *name;
  }
  Result<berth::Run> drive(const std::string& name, RunObserver* observer = nullptr,
                           Stop* stop = nullptr) {
    return runs_->drive(name, {.cluster = &cluster_, .observer = observer, .stop = stop});
  }

  std::optional<Runs> runs_;
  Scripted cluster_;
};

TEST_F(OwnClusterTest, RunsASweepAndGivesEverythingBack) {
  const auto name = sweep();
  const auto done = drive(name);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->state, "done");
  EXPECT_EQ(done->counts.done, 3);
  EXPECT_EQ(runs_->tasks(name)->at(0).metrics.at(0).second, 1);
  EXPECT_GE(cluster_.freed, 2);
  for (const auto& offer : cluster_.offers()) EXPECT_EQ(offer.free, offer.total);
  EXPECT_EQ(drive("s-2").error().kind, ErrorKind::not_found);
}

/// tests/consumer/cpp/run.cc has `on_end`: TSan does not support how a process is started.
TEST_F(OwnClusterTest, TheTargetsOfARunAreNotified) {
  const std::string notify = "notify: {mail: me@example.com}\n";
  Kept of_sweep, of_flow, of_none;
  EXPECT_TRUE(drive(sweep(notify), &of_sweep));
  EXPECT_NE(of_sweep.notes.find("s-1: me@example.com is not notified: /no/berth"),
            std::string::npos)
      << of_sweep.notes;
  const auto file = put("flow.yaml", "name: f\n" + notify + "steps: {a: {run: ./x 1}}\n");
  const auto flow = runs_->record_file(file, {.elsewhere = true});
  ASSERT_TRUE(flow) << flow.error().message;
  EXPECT_TRUE(drive(*flow, &of_flow));
  EXPECT_NE(of_flow.notes.find("f-1: me@example.com is not notified"), std::string::npos)
      << of_flow.notes;
  EXPECT_TRUE(drive(sweep(), &of_none));
  EXPECT_EQ(of_none.notes.find("notified"), std::string::npos) << of_none.notes;
}

TEST_F(OwnClusterTest, OneThatThrowsEndsTheRunWithItsWords) {
  cluster_.on_allocate = [](auto&) -> Result<Alloc> { throw std::runtime_error("no rack"); };
  const auto name = sweep();
  const auto done = drive(name);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("allocate() of the cluster threw: no rack"),
            std::string::npos)
      << done.error().message;
  EXPECT_EQ(runs_->find(name)->state, "stopped");
  EXPECT_EQ(runs_->find(name)->error, done.error().message);
  cluster_.on_allocate = {};
  EXPECT_EQ(drive(name)->state, "done");
}

TEST_F(OwnClusterTest, OneThatGivesTooLittleIsToldAndGetsItBack) {
  cluster_.on_allocate = [](auto&) { return Alloc{.id = "1", .machine = "left", .resources = {}}; };
  const auto sources = library::own_sources(*env_, cluster_);
  const auto alloc = sources.main->cluster->allocate({.requirements = {cores_of(1), 1}});
  ASSERT_FALSE(alloc);
  EXPECT_EQ(alloc.error().message,
            "allocate() of the cluster: requested cpu 1, got nothing of left");
  EXPECT_EQ(cluster_.freed, 1);
}

TEST_F(OwnClusterTest, WhatIsTooLargeIsImpossible) {
  const auto done = drive(sweep("resources: {cpu: 2}\n"));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::impossible);
}

TEST_F(OwnClusterTest, ABeginThatFailsBeginsNothing) {
  cluster_.on_begin = [](auto&) -> Status { return fail(ErrorKind::denied, "no key"); };
  EXPECT_EQ(drive(sweep()).error().message, "no key");
  EXPECT_TRUE(cluster_.started.empty());
}

TEST_F(OwnClusterTest, AStartThatThrowsFailsItsTask) {
  cluster_.on_start = [](const Attempt& attempt, const Reporter& reporter) -> Status {
    if (attempt.task.ends_with("/2")) throw 7;
    Scripted::end_well(reporter);
    return {};
  };
  const auto name = sweep("on_failure: continue\n");
  EXPECT_EQ(drive(name)->counts.failed, 1);
  EXPECT_EQ(runs_->tasks(name)->at(1).attempts, 1);
}

TEST_F(OwnClusterTest, WhatIsLostOrForgottenRunsAgainElsewhere) {
  std::atomic<int> times = 0;
  cluster_.on_start = [&](const Attempt&, const Reporter& reporter) -> Status {
    const int nth = ++times;
    if (nth == 1) reporter.ended({.lost = true});
    if (nth > 2) Scripted::end_well(reporter);
    return {};  // the second is forgotten
  };
  const auto name = sweep();
  EXPECT_EQ(drive(name)->counts.done, 3);
  EXPECT_EQ(times, 5);
}

TEST_F(OwnClusterTest, ALeaseThatIsGoneTakesItsAttemptsAlong) {
  cluster_.lease = std::chrono::milliseconds(300);
  std::atomic<int> times = 0;
  cluster_.on_start = [&](const Attempt&, Reporter reporter) -> Status {
    if (++times == 1)
      cluster_.kept = std::move(reporter);
    else
      Scripted::end_well(reporter);
    return {};
  };
  cluster_.on_keepalive = [&](const Alloc& alloc) -> Status {
    if (alloc.id == "1" && times > 0) return fail(ErrorKind::stale, "the host is gone");
    return {};
  };
  EXPECT_EQ(drive(sweep("parallel: 1\n"))->counts.done, 3);
  EXPECT_EQ(times, 4);
}

TEST_F(OwnClusterTest, WhatRunsOnAnAllocIsEndedBeforeThatIsFreed) {
  const auto sources = library::own_sources(*env_, cluster_);
  cluster_.on_start = [&](const Attempt&, Reporter reporter) -> Status {
    cluster_.kept = std::move(reporter);
    return {};
  };
  const auto alloc = sources.main->cluster->allocate({.requirements = {cores_of(1), 1}});
  ASSERT_TRUE(alloc);
  const auto worker = sources.main->start_worker(*alloc);
  worker->send(launch_of_one());
  EXPECT_FALSE(worker->idle());
  ASSERT_TRUE(sources.main->cluster->free(alloc->id));
  EXPECT_EQ(cluster_.stops, std::vector<bool>{true});
  EXPECT_EQ(cluster_.freed, 1);
}

TEST_F(OwnClusterTest, ATimeLimitIsKeptForIt) {
  cluster_.on_start = [&](const Attempt&, Reporter reporter) -> Status {
    cluster_.kept = std::move(reporter);
    return {};
  };
  const auto file = put("f.yaml", "name: f\nrun: x\ntimeout: 30ms\ngrace: 30ms\n");
  const auto name = runs_->record_file(file, {.elsewhere = true});
  ASSERT_TRUE(name) << name.error().message;
  EXPECT_EQ(drive(*name)->state, "failed");
  EXPECT_EQ(cluster_.stops, (std::vector<bool>{false, true}));
}

TEST_F(OwnClusterTest, AnObserverThatThrowsStopsTheRun) {
  struct Thrower : RunObserver {
    void on_task_end(const Task&) override { throw std::runtime_error("the screen is gone"); }
  } thrower;
  cluster_.on_start = [&](const Attempt&, Reporter reporter) -> Status {
    if (cluster_.started.size() == 1)
      Scripted::end_well(reporter);
    else
      cluster_.kept = std::move(reporter);
    return {};
  };
  const auto name = sweep("parallel: 1\ngrace: 10ms\n");
  const auto done = drive(name, &thrower);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "the observer threw: the screen is gone");
  EXPECT_EQ(runs_->find(name)->state, "stopped");
  cluster_.on_start = Scripted().on_start;
  EXPECT_EQ(drive(name)->state, "done");
  EXPECT_EQ(runs_->follow(name, thrower).error().kind, ErrorKind::invalid);
}

TEST_F(OwnClusterTest, AStopComesFromAnyThreadAndIsOfOneDrive) {
  Stop stop;
  std::optional<Result<berth::Run>> second;
  const auto name = sweep();
  cluster_.on_start = [&](const Attempt&, Reporter reporter) -> Status {
    if (!second) second = drive(name, nullptr, &stop);
    cluster_.kept = std::move(reporter);
    std::thread([&] { stop.request(); }).join();
    std::thread([&] { stop.request(); }).join();
    return {};
  };
  const auto done = drive(name, nullptr, &stop);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->state, "stopped");
  EXPECT_EQ(second->error().kind, ErrorKind::busy);
  EXPECT_EQ(drive(name, nullptr, &stop)->state, "stopped");
}

TEST_F(OwnClusterTest, WhatDoesNotEndIsGivenUpWithItsAlloc) {
  OwnWorker worker(*env_, cluster_, {.id = "1", .machine = "left", .resources = cores_of(1)},
                   nullptr, std::chrono::milliseconds(20));
  cluster_.on_start = [&](const Attempt&, Reporter reporter) -> Status {
    cluster_.kept = std::move(reporter);
    return {};
  };
  worker.send(launch_of_one());
  auto reporter = *std::exchange(cluster_.kept, std::nullopt);
  worker.send(exec::Abandon{});
  std::vector<exec::FromWorker> messages;
  while (!worker.lost()) ASSERT_TRUE(env_->loop().turn());
  worker.take_messages(messages);
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(std::get<exec::Ended>(messages[1]).cause, exec::Cause::stopped);
  EXPECT_TRUE(worker.idle());
  reporter.ended({});  // it is not heard any more
  ASSERT_TRUE(env_->loop().turn(env_->now() + std::chrono::milliseconds(5)));
  EXPECT_TRUE(worker.idle());
}

TEST(StaticClusterTest, LeasesWhereThereIsMostRoomAndNotWhereItIsAvoided) {
  struct Idle : StaticCluster {
    Idle() : StaticCluster({{"small", cores_of(1)}, {"large", cores_of(4)}}) {}
    Status start(const Alloc&, const Attempt&, Reporter) override { return {}; }
    void stop(const Alloc&, const Attempt&, bool) override {}
  } cluster;
  Wish wish{.requirements = {cores_of(1), 3}};
  const auto first = cluster.allocate(wish);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->machine, "large");
  EXPECT_EQ(first->resources, cores_of(3));
  wish.avoid = {"small"};
  EXPECT_EQ(cluster.allocate(wish)->resources, cores_of(1));
  EXPECT_EQ(cluster.allocate(wish).error().kind, ErrorKind::busy);
  wish.avoid = {};
  EXPECT_EQ(cluster.allocate(wish)->machine, "small");
  cluster.free(*first);
  cluster.free(*first);  // it was freed before
  EXPECT_EQ(cluster.offers().at(1).free, cores_of(3));
  wish.requirements.min = cores_of(5);
  EXPECT_EQ(cluster.allocate(wish).error().kind, ErrorKind::impossible);
}

}  // namespace
}  // namespace berth
