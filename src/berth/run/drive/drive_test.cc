// Whole runs on a fake world: memory store, fake processes, a clock that jumps.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>

#include "berth/base/rng.h"
#include "berth/os/loop.h"
#include "berth/run/drive/local_worker.h"
#include "berth/run/drive/workload.h"
#include "berth/testing/failing_store.h"
#include "berth/testing/fake_cluster.h"
#include "berth/testing/run.h"

namespace berth::run {
namespace {

using testing::Quiet;
using testing::World;

TEST(Drive, RunsEveryTrialOnceTwoSideBySide) {
  World world;
  const auto run = world.submit_trials(20);
  const auto done = drive(world.context, run.name, world.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->state, store::RunState::done);
  EXPECT_EQ(done->counts, (store::Counts{.done = 20}));
  EXPECT_EQ(world.env.spawned(), 20U);
  EXPECT_EQ(world.env.most_alive(), 2U);  // two cores, one each
  EXPECT_EQ(world.env.descriptors(), 0U);
}

TEST(Drive, ScoresRetriesAndFailuresAreRecorded) {
  World world;
  std::map<std::string, int> tries;
  world.env.program = [&](const os::SpawnSpec& spec) {
    const std::string& trial = spec.argv.at(1);
    os::FakeProgram program{.out = "::berth score=" + trial + "\n", .err = ""};
    if (trial == "2" && ++tries[trial] == 1) program.exit_code = 9;
    if (trial == "3") program.exit_code = 4;
    return program;
  };
  const auto run = world.submit_trials(4, "goal: {metric: score}\nretries: 1\n");
  const auto done = drive(world.context, run.name, world.observer);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->state, store::RunState::failed);
  EXPECT_EQ(done->counts, (store::Counts{.done = 3, .failed = 1}));
  const auto tasks = world.context.store->tasks(run.id);
  EXPECT_EQ(tasks->at(1).attempts, 2);
  EXPECT_EQ(tasks->at(2).attempts, 2);
  EXPECT_EQ(tasks->at(2).exit_code, 4);
  EXPECT_EQ(tasks->at(3).metrics, (store::Numbers{{"score", 4}}));
  EXPECT_EQ(world.observer.last.leaders.at(0).label, "4");
}

TEST(Drive, OnFailureStopHaltsAndFails) {
  World world;
  world.env.program = [](const os::SpawnSpec& spec) {
    return os::FakeProgram{.exit_code = spec.argv.at(1) == "3" ? 1 : 0};
  };
  const auto run = world.submit_trials(50, "on_failure: stop\n");
  const auto done = drive(world.context, run.name, world.observer);
  EXPECT_EQ(done->state, store::RunState::failed);
  EXPECT_GT(done->counts.waiting, 40);
}

TEST(Drive, AllowedFailuresLeaveTheRunDone) {
  for (const auto& [allowed, state] : {std::pair("2", store::RunState::done),
                                       {"1", store::RunState::failed},
                                       {"true", store::RunState::done},
                                       {"0", store::RunState::failed}}) {
    World world;
    world.env.program = [](const os::SpawnSpec& spec) {
      return os::FakeProgram{.exit_code = spec.argv.at(1) == "3" || spec.argv.at(1) == "4" ? 1 : 0};
    };
    const auto run = world.submit_trials(6, fmt::format("allow_failures: {}\n", allowed));
    const auto done = drive(world.context, run.name, world.observer);
    ASSERT_TRUE(done);
    EXPECT_EQ(done->state, state) << allowed;
    EXPECT_EQ(done->counts, (store::Counts{.done = 4, .failed = 2}));
  }
}

TEST(Drive, IsQueuedUntilItHasItsFirstAllocation) {
  World world;
  std::vector<store::RunState> seen;
  world.env.program = [](const os::SpawnSpec&) {
    return os::FakeProgram{.duration = std::chrono::seconds(1)};
  };
  world.env.fault = [&](std::string_view call) -> std::optional<Error> {
    const auto runs = world.context.store->runs();
    if (call == "wait" && !runs->empty() && (seen.empty() || seen.back() != runs->back().state))
      seen.push_back(runs->back().state);
    return std::nullopt;
  };
  const auto run = world.submit_trials(1, "");
  EXPECT_EQ(run.state, store::RunState::queued);
  EXPECT_FALSE(run.started);
  const auto done = drive(world.context, run.name, world.observer);
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->started);
  EXPECT_EQ(seen.back(), store::RunState::running);
}

TEST(Drive, ARunHasStartedBeforeItsFirstTask) {
  World world;
  world.env.program = [](const os::SpawnSpec&) {
    return os::FakeProgram{.duration = std::chrono::seconds(1)};
  };
  const auto run = world.submit_trials(3, "");
  const auto done = drive(world.context, run.name, world.observer);
  ASSERT_TRUE(done && done->started);
  EXPECT_LE(*done->started, world.context.store->attempts(run.id, {1})->at(0).started);
}

TEST(Drive, TimeLimitTermThenKill) {
  World world;
  world.env.program = [](const os::SpawnSpec&) {
    return os::FakeProgram{.duration = std::chrono::hours(9), .ignores_term = true};
  };
  const auto run = world.submit_trials(1, "timeout: 10s\ngrace: 3s\n");
  const auto done = drive(world.context, run.name, world.observer);
  EXPECT_EQ(done->counts.failed, 1);
  const auto attempt = world.context.store->attempts(run.id, {1})->at(0);
  EXPECT_EQ(attempt.cause, exec::Cause::time_limit);
  EXPECT_EQ(attempt.detail, "it ran longer than 10.0s and ignored TERM");
  EXPECT_GE(*attempt.ended - attempt.started, std::chrono::seconds(13));
}

TEST(Drive, StopSignalStopsAndResumeFinishes) {
  World world;
  world.env.program = [](const os::SpawnSpec&) {
    return os::FakeProgram{.duration = std::chrono::seconds(1)};
  };
  const auto run = world.submit_trials(10);
  world.env.stop_at = Mono(std::chrono::milliseconds(2500));
  const auto stopped = drive(world.context, run.name, world.observer);
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->state, store::RunState::stopped);
  EXPECT_EQ(stopped->counts.done, 4);
  EXPECT_EQ(stopped->counts.stopped, 6);
  world.env.stops = 0;
  const auto done = drive(world.context, run.name, world.observer);
  EXPECT_EQ(done->state, store::RunState::done);
  EXPECT_EQ(done->counts, (store::Counts{.done = 10}));
}

TEST(Drive, SecondDriverIsRefused) {
  World world;
  const auto run = world.submit_trials(1);
  (void)world.env.make_directory("/state/runs/t-1", 0700);
  const auto lock = world.env.lock("/state/runs/t-1/lock", false);
  const auto second = drive(world.context, run.name, world.observer);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::busy);
}

TEST(Drive, SpawnThatFailsIsTheTasksOwnFault) {
  World world;
  int calls = 0;
  world.env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call == "spawn" && ++calls == 2) return Error{ErrorKind::not_found, "./x: no such file"};
    return std::nullopt;
  };
  const auto run = world.submit_trials(3, "retries: 3\n");
  const auto done = drive(world.context, run.name, world.observer);
  EXPECT_EQ(done->counts, (store::Counts{.done = 2, .failed = 1}));
  EXPECT_EQ(world.context.store->tasks(run.id)->at(1).cause, exec::Cause::cannot_start);
}

TEST(Drive, AnotherRunsAllocIsWaitedFor) {
  World world;
  const auto run = world.submit_trials(1, "resources: {cpu: 2}\n");
  auto ledger = machine::Ledger::open(world.env, "/ledger");
  Resources one;
  one.set(Known::cpu, 1000);
  const auto capacity = machine::discover(world.env, world.context.capacity);
  ASSERT_TRUE(capacity) << capacity.error().message;
  const auto held = ledger->acquire(machine::host_of(*capacity, nullptr), {one, "other-1"}, {});
  ASSERT_TRUE(held) << held.error().message;
  // The holder goes once the run has asked and was refused.
  int asked = 0;
  world.env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call == "wait" && ++asked == 3) {
      EXPECT_TRUE(ledger->release(held->id));
    }
    return std::nullopt;
  };
  const auto done = drive(world.context, run.name, world.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->state, store::RunState::done);
}

TEST(Drive, LongSweepLetsAnotherInTrialByTrial) {
  World world;
  world.env.program = [](const os::SpawnSpec&) {
    return os::FakeProgram{.duration = std::chrono::seconds(1)};
  };
  const auto run = world.submit_trials(20);
  auto ledger = machine::Ledger::open(world.env, "/ledger");
  const auto host =
      machine::host_of(*machine::discover(world.env, world.context.capacity), nullptr);
  Resources both;
  both.set(Known::cpu, 2000);
  // Another process asks for both cores, from the third second on, whenever the world turns.
  const os::ProcessIdentity runner = world.env.identity;
  const auto ticket = ledger->new_ticket();
  std::optional<Mono> granted;
  world.env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call != "wait" || granted || world.env.now() < Mono(std::chrono::seconds(3)))
      return std::nullopt;
    world.env.identity = {4000, 1};
    if (const auto alloc = ledger->acquire(host, {both, "other-1"}, ticket)) {
      granted = world.env.now();
      EXPECT_EQ(world.env.processes_alive(), 0U);
      EXPECT_TRUE(ledger->release(alloc->id));
    }
    world.env.identity = runner;
    return std::nullopt;
  };
  const auto done = drive(world.context, run.name, world.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts.done, 20);
  ASSERT_TRUE(granted);
  EXPECT_LT(*granted, Mono(std::chrono::seconds(6)));
}

/// By a seed of ./dev simulate.
TEST(Drive, ASupersededAttemptTakesNoRetry) {
  World world;
  const auto run = world.submit_trials(1, "retries: 1\n");
  const Wall at = world.env.wall();
  ASSERT_TRUE(world.context.store->apply(run.id, {{store::AttemptStarted{{1}, {1}, at, "", ""},
                                                   store::AttemptStarted{{1}, {2}, at, "", ""}}}));
  world.env.program = [&](const os::SpawnSpec&) {
    return os::FakeProgram{.exit_code = world.env.spawned() == 0 ? 1 : 0};
  };
  const auto done = drive(world.context, run.name, world.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts, (store::Counts{.done = 1}));
}

/// By a seed of ./dev simulate: what ran there was started a second time.
TEST(Drive, AgentsThatCannotBeListedAreNotTakenForGone) {
  World world;
  const auto run = world.submit_trials(1);
  int listed = 0;
  world.env.fault = [&](std::string_view call) -> std::optional<Error> {
    if (call != "list" || ++listed > 1) return std::nullopt;
    return Error{ErrorKind::io, "too many open files"};
  };
  const auto done = drive(world.context, run.name, world.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts.done, 1);
  EXPECT_TRUE(std::ranges::any_of(world.observer.notes, [](const auto& note) {
    return note.contains("too many open files; trying again");
  }));
}

/// One run in a world where the n-th call and the n-th record fail, before or after they took
/// effect, and processes end at random; a runner that gave up or died is followed by the next,
/// until the run is done.
void survive(std::uint64_t seed) {
  Rng rng(seed);
  World world(seed);
  const auto durable = std::move(world.context.store);
  auto faulty_store = std::make_unique<store::FailingStore>(*durable);
  store::FailingStore& fragile = *faulty_store;
  world.context.store = std::move(faulty_store);
  const int trials = static_cast<int>(1 + rng.below(12));
  std::map<std::string, int> executions;
  world.env.program = [&](const os::SpawnSpec& spec) {
    ++executions[spec.argv.at(1)];
    os::FakeProgram program{.duration = from_ms(static_cast<std::int64_t>(rng.below(300))),
                            .out = "::berth score=1\n",
                            .err = "",
                            .exit_code = rng.below(5) == 0 ? 1 : 0};
    program.ignores_term = rng.below(4) == 0;
    return program;
  };
  const auto run = world.submit_trials(trials, "retries: 1000\ngoal: {metric: score}\n");
  for (int runner = 0;; ++runner) {
    ASSERT_LT(runner, 60) << "no end";
    const auto faulty = std::make_shared<std::uint64_t>(1 + rng.below(400));
    const bool calm = runner > 20;
    world.env.fault = [faulty, calm](std::string_view call) -> std::optional<Error> {
      if (calm || call == "signal" || call == "reap" || call == "wait" || --*faulty != 0)
        return std::nullopt;
      return Error{ErrorKind::full, "no space left"};
    };
    if (rng.below(3) == 0)
      world.env.stop_at = world.env.now() + from_ms(static_cast<std::int64_t>(rng.below(500)));
    if (!calm && rng.below(2) == 0)
      fragile.arm(
          {.call = static_cast<std::int64_t>(1 + rng.below(20)), .took_effect = rng.below(2) == 0});
    world.env.stops = 0;
    const auto end = drive(world.context, run.name, world.observer);
    world.env.fault = nullptr;
    fragile.disarm();
    ASSERT_EQ(world.env.processes_alive(), 0U) << "an orphan";
    ASSERT_EQ(world.env.descriptors(), 0U) << "a descriptor leaked";
    if (end && end->state == store::RunState::done) break;
    world.env.stop_at.reset();
    world.env.dead.insert(world.env.identity.pid);
    ++world.env.identity.pid;
  }
  std::set<std::int64_t> tokens;
  const auto tasks = world.context.store->tasks(run.id);
  for (const auto& task : *tasks) {
    // A program that could not be started for want of a descriptor is not tried again.
    EXPECT_TRUE(store::final(task.state));
    int completed = 0;
    const auto attempts = world.context.store->attempts(run.id, task.number);
    for (const auto& attempt : *attempts) {
      EXPECT_TRUE(tokens.insert(attempt.token.value).second);
      if (attempt.cause == exec::Cause::ok) ++completed;
    }
    EXPECT_EQ(completed, task.state == store::TaskState::done ? 1 : 0);
    EXPECT_GE(executions[task.label], completed);
  }
}

TEST(Drive, SurvivesFaultsAnywhere) {
  const char* one = std::getenv("BERTH_SEED");
  const std::uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 10) : 0;
  const std::uint64_t last = one != nullptr ? first + 1 : 2000;
  for (std::uint64_t seed = first; seed < last; ++seed) {
    survive(seed);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "replay with BERTH_SEED=" << seed;
  }
}

struct ServerWorld : World {
  ServerWorld() { env.variables["BERTH_TOPOLOGY"] = "dgx1-v100"; }
  /// What a task's process was told of its devices.
  static std::string seen_by(const os::SpawnSpec& spec) {
    for (const auto& [name, value] : spec.environment)
      if (name == "CUDA_VISIBLE_DEVICES") return value;
    return "none";
  }
};

TEST(DriveDevices, ThreePartsOfTenGigabytesShareACard) {
  ServerWorld world;
  std::map<std::string, int> alive, most;
  world.env.program = [&](const os::SpawnSpec& spec) {
    if (spec.argv.at(1) == "watch-devices")
      return os::FakeProgram{.duration = std::chrono::hours(9)};
    ++most[ServerWorld::seen_by(spec)];
    return os::FakeProgram{.duration = std::chrono::seconds(10)};
  };
  const auto run = world.submit_trials(24, "resources: {cpu: 0.05, gpu: 1, gpu_mem: 10G}\n");
  const auto done = drive(world.context, run.name, world.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts, (store::Counts{.done = 24}));
  EXPECT_EQ(world.env.most_alive(), 25U) << "all 24 side by side, and the watch";
  EXPECT_EQ(most.size(), 8U);
  for (const auto& [uuid, tasks] : most) EXPECT_EQ(tasks, 3) << uuid;
  const auto tasks = world.context.store->tasks(run.id);
  ASSERT_TRUE(tasks);
  for (const auto& task : *tasks) EXPECT_TRUE(task.devices.starts_with("[\"gpu-")) << task.devices;
  EXPECT_EQ(world.env.processes_alive(), 0U);
  EXPECT_EQ(world.env.descriptors(), 0U);
}

TEST(DriveDevices, AFallenDeviceIsToldToItsHolderAndGivenToNobodyUntilItIsWell) {
  ServerWorld world;
  machine::DeviceHealthUpdate ill;
  ill.out_of_service = {{"gpu-0", "2 of 6 links to GPU1 are lost"}};
  int watches = 0;
  std::vector<std::string> used;
  world.env.program = [&](const os::SpawnSpec& spec) {
    if (spec.argv.at(1) == "watch-devices")
      return os::FakeProgram{
          .duration = std::chrono::milliseconds(10),
          .out = machine::to_json(++watches == 1 ? ill : machine::DeviceHealthUpdate{}) + "\n"};
    used.push_back(ServerWorld::seen_by(spec));
    return os::FakeProgram{.duration = std::chrono::seconds(1)};
  };
  const auto run = world.submit_trials(60, "resources: {cpu: 0.05, gpu: 1}\n");
  const auto done = drive(world.context, run.name, world.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts.done, 60);
  const std::string fell =
      "GPU0 is out of service: 2 of 6 links to GPU1 are lost; t-1/1 runs on it";
  EXPECT_EQ(std::ranges::count(world.observer.notes, fell), 1);
  EXPECT_EQ(std::ranges::count(used, "gpu-0"), 1) << "the one that had it before";
}

/// A worker whose machine does not answer when it is told that it is needed no longer.
class SlowToFinish final : public exec::Worker {
 public:
  SlowToFinish(os::Env& env, const machine::Block& block)
      : env_(env),
        groups_(env),
        worker_(env, nullptr, block, groups_, inherited_environment(env), "/tmp") {}
  void send(const exec::ToWorker& message) override { worker_.send(message); }
  void set_reading(bool reads_output) override { worker_.set_reading(reads_output); }
  void take_messages(std::vector<exec::FromWorker>& messages) override {
    worker_.take_messages(messages);
  }
  bool idle() const override { return worker_.idle(); }
  void finish() override {
    for (const Mono until = env_.now() + std::chrono::seconds(3); env_.now() < until;)
      ASSERT_TRUE(env_.loop().turn(until));
  }

 private:
  os::Env& env_;
  machine::Groups groups_;
  LocalWorker worker_;
};

TEST(DriveDevices, ADeviceMayFallWhileWorkersAreGivenBack) {
  ServerWorld world;
  machine::DeviceHealthUpdate ill;
  ill.out_of_service = {{"gpu-0", "2 of 6 links to GPU1 are lost"}};
  world.context.devices = *machine::read_devices(world.env, {}, world.context.ledger_directory);
  int tasks = 0;
  world.env.program = [&](const os::SpawnSpec& spec) {
    if (spec.argv.at(1) == "watch-devices")  // it tells this while the third is given back
      return os::FakeProgram{.duration = std::chrono::milliseconds(6500),
                             .out = machine::to_json(ill) + "\n"};
    return os::FakeProgram{.duration = std::chrono::seconds(++tasks == 2 ? 60 : 2)};
  };
  world.context.sources = [&](const store::RunRecord&) -> Result<Sources> {
    auto pool = std::make_unique<cluster::FakePool>(
        world.env, cluster::FakePool::Options{.lease = std::chrono::minutes(10)});
    for (int i = 0; i < 3; ++i) pool->add(cluster::block_of(1, 8LL << 30));
    return Sources{.main = Source{.name = "lab",
                                  .cluster = std::move(pool),
                                  .start_worker = [&](const cluster::Alloc& alloc) {
                                    return std::make_unique<SlowToFinish>(world.env, alloc.block);
                                  }}};
  };
  const auto run = world.submit_trials(3);
  const auto done = drive(world.context, run.name, world.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->counts.done, 3);
  EXPECT_EQ(std::ranges::count(world.observer.notes,
                               "GPU0 is out of service: 2 of 6 links to GPU1 are lost"),
            1);
}

TEST(DriveDevices, WithoutAGpuInTheRequestNoDriverIsAsked) {
  ServerWorld world;
  world.env.variables["BERTH_TOPOLOGY"] = "no such machine";
  const auto run = world.submit_trials(2);
  const auto done = drive(world.context, run.name, world.observer);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(world.env.spawned(), 2U);
}

}  // namespace
}  // namespace berth::run
