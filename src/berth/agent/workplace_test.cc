// The contract of exec/workplace.h, on every implementation: the worker itself, an agent at the
// other end of a link, a worker that can start nothing, and a link whose agent is gone.
#include "berth/exec/workplace.h"

#include <csignal>

#include "berth/agent/agent_testing.h"
#include "berth/base/rng.h"

namespace berth::agent {
namespace {

struct Place {
  const char* name;
  bool remote, starts_nothing, gone;
};
void PrintTo(const Place& place, std::ostream* out) {
  *out << place.name;
}

class WorkplaceTest : public ::testing::TestWithParam<Place> {
 protected:
  WorkplaceTest() : machine_(cores(4)), groups_(world_.env) {
    world_.env.program = [this](const os::SpawnSpec& spec) { return program_(spec); };
    if (GetParam().starts_nothing)
      world_.env.fault = [](std::string_view call) -> std::optional<Error> {
        if (call != "spawn") return std::nullopt;
        return Error{ErrorKind::full, "no process left"};
      };
    if (GetParam().gone) {
      place_ = world_.attach(1);
    } else if (GetParam().remote) {
      world_.open();
      place_ = world_.attach(1);
    } else {
      place_ = std::make_unique<exec::Worker>(world_.env, machine_, groups_);
    }
  }
  void run() {
    if (GetParam().gone) {
      for (int i = 0; i < 5; ++i) world_.turn(place_.get(), heard_);
    } else {
      world_.run(place_.get(), heard_, [&] { return place_->idle(); });
    }
  }
  bool works() const { return !GetParam().starts_nothing && !GetParam().gone; }

  std::function<os::FakeProgram(const os::SpawnSpec&)> program_ = [](const os::SpawnSpec&) {
    return os::FakeProgram{.out = "one\n::berth loss=1\n"};
  };
  FakeWorld world_;
  machine::Machine machine_;
  machine::Groups groups_;
  std::unique_ptr<exec::Workplace> place_;
  Heard heard_;
};

INSTANTIATE_TEST_SUITE_P(Contract, WorkplaceTest,
                         ::testing::Values(Place{"worker", false, false, false},
                                           Place{"link", true, false, false},
                                           Place{"worker_that_starts_nothing", false, true, false},
                                           Place{"link_that_starts_nothing", true, true, false},
                                           Place{"lost_link", true, false, true}),
                         [](const auto& test) { return test.param.name; });

TEST_P(WorkplaceTest, EachLaunchEndsOnceAfterItStartedAndSpoke) {
  for (std::int64_t token = 1; token <= 20; ++token) {
    if (token % 4 == 1) run();
    place_->tell(launch_of(token));
  }
  run();
  EXPECT_EQ(heard_.ended.size(), GetParam().gone ? 0U : 20U);
  for (const auto& [token, times] : heard_.ended) {
    EXPECT_EQ(times, 1);
    EXPECT_EQ(heard_.started[token], works() ? 1 : 0);
    EXPECT_EQ(heard_.output[token], works() ? "one\n::berth loss=1\n" : "");
    EXPECT_EQ(heard_.ends[token].cause, works() ? exec::Cause::ok : exec::Cause::short_of_means);
  }
  EXPECT_EQ(heard_.metrics, works() ? 20U : 0U);
  EXPECT_EQ(place_->lost().has_value(), GetParam().gone);
}

TEST_P(WorkplaceTest, CancelledIsStoppedAndAnUnknownTokenIsNothing) {
  program_ = [](const os::SpawnSpec& spec) {
    return os::FakeProgram{.duration = std::chrono::hours(1),
                           .ignores_term = spec.argv[0] == "deaf"};
  };
  place_->tell(launch_of(1));
  place_->tell(launch_of(2, {"deaf"}));
  for (int i = 0; i < 5; ++i) world_.turn(place_.get(), heard_);
  place_->tell(exec::Cancel{{77}});
  place_->tell(exec::Cancel{{1}});
  place_->tell(exec::Cancel{{2}});
  run();
  if (works()) {
    EXPECT_EQ(heard_.ends[1].cause, exec::Cause::stopped);
    EXPECT_EQ(heard_.ends[2].cause, exec::Cause::stopped);
    EXPECT_EQ(heard_.ends[2].signal, SIGKILL);
  }
  EXPECT_LT(world_.env.now(), Mono(std::chrono::minutes(1)));
}

TEST_P(WorkplaceTest, AbandonedEndsAtOnce) {
  program_ = [](const os::SpawnSpec&) {
    return os::FakeProgram{.duration = std::chrono::hours(1), .ignores_term = true};
  };
  for (std::int64_t token = 1; token <= 4; ++token) place_->tell(launch_of(token));
  for (int i = 0; i < 5; ++i) world_.turn(place_.get(), heard_);
  place_->tell(exec::Abandon{});
  run();
  for (const auto& [token, ended] : heard_.ends)
    EXPECT_EQ(ended.cause, works() ? exec::Cause::stopped : exec::Cause::short_of_means);
  EXPECT_EQ(world_.env.processes_alive(), 0U);
}

TEST_P(WorkplaceTest, WhatCannotFitEndsAlone) {
  auto launch = launch_of(1);
  launch.request.resources.set(Known::cpu, 1'000'000);
  place_->tell(launch);
  run();
  EXPECT_TRUE(heard_.started.empty());
  if (!GetParam().gone) {
    EXPECT_EQ(heard_.ends[1].cause, exec::Cause::cannot_start);
  }
}

TEST_P(WorkplaceTest, NothingComesUnasked) {
  for (int i = 0; i < 20; ++i) world_.turn(place_.get(), heard_);
  place_->acknowledge();
  for (int i = 0; i < 20; ++i) world_.turn(place_.get(), heard_);
  EXPECT_TRUE(place_->idle());
  EXPECT_TRUE(heard_.started.empty() && heard_.ended.empty());
}

}  // namespace
}  // namespace berth::agent
