// The contract of exec/worker.h, on every implementation: a ProcessWorker, an agent client, a
// worker that can start nothing, and a client whose agent is gone.
#include "berth/exec/worker.h"

#include <csignal>

#include "berth/testing/agent.h"

namespace berth::agent {
namespace {

struct WorkerCase {
  const char* name;
  bool remote, starts_nothing, gone;
};
void PrintTo(const WorkerCase& worker_case, std::ostream* out) {
  *out << worker_case.name;
}

class WorkerTest : public ::testing::TestWithParam<WorkerCase> {
 protected:
  WorkerTest() : machine_(cores(4)), groups_(world_.env) {
    world_.env.program = [this](const os::SpawnSpec& spec) { return program_(spec); };
    if (GetParam().starts_nothing)
      world_.env.fault = [](std::string_view call) -> std::optional<Error> {
        if (call != "spawn") return std::nullopt;
        return Error{ErrorKind::full, "no process left"};
      };
    if (GetParam().gone) {
      worker_ = world_.attach(1);
    } else if (GetParam().remote) {
      world_.open();
      worker_ = world_.attach(1);
    } else {
      worker_ = std::make_unique<exec::ProcessWorker>(world_.env, machine_, groups_);
    }
  }
  void run() {
    if (GetParam().gone) {
      for (int i = 0; i < 5; ++i) world_.turn(worker_.get(), reports_);
    } else {
      world_.run(worker_.get(), reports_, [&] { return worker_->idle(); });
    }
  }
  bool works() const { return !GetParam().starts_nothing && !GetParam().gone; }

  std::function<os::FakeProgram(const os::SpawnSpec&)> program_ = [](const os::SpawnSpec&) {
    return os::FakeProgram{.out = "one\n::berth loss=1\n"};
  };
  FakeWorld world_;
  machine::Machine machine_;
  machine::Groups groups_;
  std::unique_ptr<exec::Worker> worker_;
  Reports reports_;
};

INSTANTIATE_TEST_SUITE_P(
    Contract, WorkerTest,
    ::testing::Values(WorkerCase{"worker", false, false, false},
                      WorkerCase{"client", true, false, false},
                      WorkerCase{"worker_that_starts_nothing", false, true, false},
                      WorkerCase{"client_that_starts_nothing", true, true, false},
                      WorkerCase{"lost_client", true, false, true}),
    [](const auto& test) { return test.param.name; });

TEST_P(WorkerTest, EachLaunchEndsOnceAfterItStartedAndSpoke) {
  for (std::int64_t token = 1; token <= 20; ++token) {
    if (token % 4 == 1) run();
    worker_->send(launch_of(token));
  }
  run();
  EXPECT_EQ(reports_.ended.size(), GetParam().gone ? 0U : 20U);
  for (const auto& [token, times] : reports_.ended) {
    EXPECT_EQ(times, 1);
    EXPECT_EQ(reports_.started[token], works() ? 1 : 0);
    EXPECT_EQ(reports_.output[token], works() ? "one\n::berth loss=1\n" : "");
    EXPECT_EQ(reports_.ends[token].cause, works() ? exec::Cause::ok : exec::Cause::short_of_means);
  }
  EXPECT_EQ(reports_.metrics, works() ? 20U : 0U);
  EXPECT_EQ(worker_->lost().has_value(), GetParam().gone);
}

TEST_P(WorkerTest, CancelledIsStoppedAndAnUnknownTokenIsNothing) {
  program_ = [](const os::SpawnSpec& spec) {
    return os::FakeProgram{.duration = std::chrono::hours(1),
                           .ignores_term = spec.argv[0] == "deaf"};
  };
  worker_->send(launch_of(1));
  worker_->send(launch_of(2, {"deaf"}));
  for (int i = 0; i < 5; ++i) world_.turn(worker_.get(), reports_);
  worker_->send(exec::Cancel{{77}});
  worker_->send(exec::Cancel{{1}});
  worker_->send(exec::Cancel{{2}});
  run();
  if (works()) {
    EXPECT_EQ(reports_.ends[1].cause, exec::Cause::stopped);
    EXPECT_EQ(reports_.ends[2].cause, exec::Cause::stopped);
    EXPECT_EQ(reports_.ends[2].signal, SIGKILL);
  }
  EXPECT_LT(world_.env.now(), Mono(std::chrono::minutes(1)));
}

TEST_P(WorkerTest, AbandonedEndsAtOnce) {
  program_ = [](const os::SpawnSpec&) {
    return os::FakeProgram{.duration = std::chrono::hours(1), .ignores_term = true};
  };
  for (std::int64_t token = 1; token <= 4; ++token) worker_->send(launch_of(token));
  for (int i = 0; i < 5; ++i) world_.turn(worker_.get(), reports_);
  worker_->send(exec::Abandon{});
  run();
  for (const auto& [token, ended] : reports_.ends)
    EXPECT_EQ(ended.cause, works() ? exec::Cause::stopped : exec::Cause::short_of_means);
  EXPECT_EQ(world_.env.processes_alive(), 0U);
}

TEST_P(WorkerTest, WhatCannotFitEndsAlone) {
  auto launch = launch_of(1);
  launch.request.resources.set(Known::cpu, 1'000'000);
  worker_->send(launch);
  run();
  EXPECT_TRUE(reports_.started.empty());
  if (!GetParam().gone) {
    EXPECT_EQ(reports_.ends[1].cause, exec::Cause::cannot_start);
  }
}

TEST_P(WorkerTest, NothingComesUnasked) {
  for (int i = 0; i < 20; ++i) world_.turn(worker_.get(), reports_);
  worker_->acknowledge();
  for (int i = 0; i < 20; ++i) world_.turn(worker_.get(), reports_);
  EXPECT_TRUE(worker_->idle());
  EXPECT_TRUE(reports_.started.empty() && reports_.ended.empty());
}

}  // namespace
}  // namespace berth::agent
