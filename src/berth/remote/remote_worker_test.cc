// What is known here of a machine elsewhere is kept as long as something may run there.
#include "berth/remote/remote_worker.h"

#include <gtest/gtest.h>

#include "berth/remote/remote_worker_record.h"
#include "berth/testing/agent.h"

namespace berth::remote {
namespace {

/// An agent behind a line that can be cut; files come never.
class RemoteWorkerTest : public ::testing::Test {
 protected:
  RemoteWorkerTest() {
    os::FakeEnv& env = world_.env;
    env.program = [this](const os::SpawnSpec& spec) {
      return spec.argv[0] == "ssh" ? os::FakeProgram{} : agent::takes(task_);
    };
    env.talk = [this, &env](const os::SpawnSpec& spec, os::Fd end) {
      if (cut_ || spec.argv.back().contains("files")) return;
      (void)env.write_some(end, std::string(agent::kHere) + "\n");
      near_ = std::move(end);
      far_ = *env.connect_local(world_.options.directory + "/socket");
    };
    world_.open();
    worker_ =
        RemoteWorker::open(env, {.lease_directory = {{.name = "far", .words = {"ssh"}}, "/far"},
                                 .agent = {},
                                 .directory = directory_,
                                 .root = "/run",
                                 .store = "/store",
                                 .task_environment = {}});
  }
  void carry(os::Fd& from, os::Fd& to) {
    std::array<char, 4096> buffer;
    while (from && to) {
      const auto got = world_.env.read_some(from, buffer);
      if (!got || !*got || **got == 0) return;
      (void)world_.env.write_some(to, {buffer.data(), **got});
    }
  }
  void run_until(const std::function<bool()>& enough) {
    for (int turns = 0; !enough(); ++turns) {
      ASSERT_LT(turns, 1000) << "it never came";
      world_.env.freeze(std::chrono::milliseconds(100));
      carry(near_, far_);
      carry(far_, near_);
      world_.turn(worker_.get(), reports_);
    }
  }
  void run_one(std::vector<std::string> stage_out = {}) {
    exec::Launch launch = agent::launch_of(1);
    launch.there = true;
    launch.stage_out = std::move(stage_out);
    worker_->send(launch);
    run_until([&] { return reports_.started[1] == 1; });
  }

  const std::string directory_ = "/run/outposts/1";
  agent::FakeWorld world_;
  Duration task_ = std::chrono::hours(1);
  bool cut_ = false;
  os::Fd near_, far_;
  std::unique_ptr<RemoteWorker> worker_;
  agent::Reports reports_;
};

TEST_F(RemoteWorkerTest, WhatMayRunBehindACutConnectionIsNotForgottenAtAStop) {
  run_one();
  cut_ = true;
  near_.reset();
  far_.reset();
  run_until([&] { return worker_->cut().has_value(); });
  worker_->finish();
  const auto attempts = recorded_attempts(world_.env, directory_).value();
  ASSERT_EQ(attempts.size(), 1U) << "nobody would know that it may still run there";
  EXPECT_EQ(attempts[0].token, Token{1});
  EXPECT_TRUE(world_.env.find(directory_ + "/place.json"));
}

TEST_F(RemoteWorkerTest, WhoHeardThatItIsOverIsForgotten) {
  run_one();
  worker_->send(exec::Abandon{});
  run_until([&] { return reports_.ended[1] == 1; });
  worker_->acknowledge();
  worker_->finish();
  EXPECT_FALSE(world_.env.find(directory_ + "/place.json"));
}

TEST_F(RemoteWorkerTest, OfAStoppedAttemptIsFetchedOnlyWhatTheNextGoesOnFrom) {
  run_one({"/run/out"});
  exec::Launch of_checkpoint = agent::launch_of(2);
  of_checkpoint.stage_in = of_checkpoint.stage_out = {"/run/checkpoint"};
  worker_->send(of_checkpoint);
  for (const auto& [token, left] : recorded_attempts(world_.env, directory_).value())
    EXPECT_EQ(left.if_stopped, token == Token{2});
  worker_->send(exec::Cancel{{1}});
  run_until([&] { return reports_.ended[1] == 1; });
  EXPECT_EQ(reports_.ends[1].cause, exec::Cause::stopped);
}

TEST_F(RemoteWorkerTest, ToldToAbandonItFetchesNotForLong) {
  task_ = std::chrono::seconds(1);
  run_one({"/run/out"});
  const Mono later = world_.env.now() + std::chrono::seconds(20);
  run_until([&] { return world_.env.now() > later; });
  EXPECT_EQ(reports_.ended[1], 0) << "it has ended, and what it left is not here";
  worker_->send(exec::Abandon{});
  const Mono told = world_.env.now();
  run_until([&] { return reports_.ended[1] == 1; });
  EXPECT_LT(world_.env.now() - told, std::chrono::seconds(5));
  EXPECT_EQ(reports_.ends[1].cause, exec::Cause::stopped);
  EXPECT_TRUE(worker_->idle());
}

}  // namespace
}  // namespace berth::remote
