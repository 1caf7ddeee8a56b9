// A client through a line that breaks, on a fake clock: who counts as gone, and when.
#include <gtest/gtest.h>

#include <algorithm>

#include "berth/agent/protocol/connection.h"
#include "berth/agent/stdio.h"
#include "berth/testing/agent.h"
#include "berth/testing/fake_process.h"

namespace berth::agent {
namespace {

constexpr Duration kLease = std::chrono::seconds(20);

/// An agent behind a command that carries what is said, one way or both, or answers nobody.
class RemoteAgentTest : public ::testing::Test {
 protected:
  enum class Way : std::uint8_t { both, there_alone, held, none };

  RemoteAgentTest()
      : world_({.directory = "/runs/a-1/agents/1", .block = cores(4), .lease = kLease}) {
    world_.env.program = [](const os::SpawnSpec& spec) {
      return spec.argv[0] == "ssh" ? os::FakeProgram{} : takes(std::chrono::hours(1));
    };
    world_.env.talk = [this](const os::SpawnSpec&, os::Fd end) {
      ++calls_;
      if (way_ == Way::held || way_ == Way::none) return;
      (void)world_.env.write_some(end, std::string(kHere) + "\n");
      near_ = std::move(end);
      far_ = *world_.env.connect_local(world_.options.directory + "/socket");
    };
    world_.step = std::chrono::milliseconds(1);
    world_.open();
    client_ = RemoteAgent::through(world_.env, {.command = {"ssh"}, .agent_file = {}}, kLease,
                                   kLease, side(1));
  }
  void cut() {
    way_ = Way::none;
    near_.reset();
    far_.reset();
  }
  void carry(os::Fd& from, os::Fd& to, bool loses) {
    std::array<char, 4096> buffer;
    while (from && to) {
      const auto got = world_.env.read_some(from, buffer);
      if (!got || !*got || **got == 0) return;
      if (!loses) (void)world_.env.write_some(to, {buffer.data(), **got});
    }
  }
  /// Everybody, and what travels between them, in steps of a tenth of a second at most.
  void run_until(const std::function<bool()>& enough) {
    for (int turns = 0; !enough(); ++turns) {
      ASSERT_LT(turns, 10'000) << "it never came";
      world_.env.freeze(std::chrono::milliseconds(100));
      if (way_ != Way::held) carry(near_, far_, false);
      carry(far_, near_, way_ == Way::there_alone);
      world_.turn(client_.get(), reports_);
    }
  }
  void run_for(Duration time) {
    run_until([&, until = world_.env.now() + time] { return world_.env.now() >= until; });
  }

  FakeWorld world_;
  Way way_ = Way::both;
  int calls_ = 0;
  os::Fd near_, far_;
  std::unique_ptr<AgentClient> client_;
  Reports reports_;
};

TEST_F(RemoteAgentTest, AnAgentIsGivenUpOnlyWhenItHasGivenItselfUp) {
  client_->send(launch_of(1));
  run_until([&] { return reports_.started[1] == 1; });
  const Mono cut_at = world_.env.now();
  cut();
  // It can be reached again before its lease has ended; its welcome is lost.
  run_for(kLease / 2);
  way_ = Way::there_alone;
  run_until([&] { return static_cast<bool>(far_); });
  run_for(std::chrono::seconds(1));
  cut();
  run_until([&] { return client_->lost().has_value(); });
  EXPECT_EQ(world_.agent, nullptr) << "its task may run elsewhere from now on, and still runs here";
  EXPECT_LE(world_.env.now() - cut_at, 2 * kLease + std::chrono::seconds(5));
  EXPECT_TRUE(client_->lost()->message.contains("and its lease of 20.0s is over"))
      << client_->lost()->message;
}

TEST_F(RemoteAgentTest, WhatWasLongOnItsWayMayHaveRenewedTheLease) {
  client_->send(launch_of(1));
  run_until([&] { return reports_.started[1] == 1; });
  const Mono last_heard = world_.env.now();
  way_ = Way::held;
  run_for(kLease - std::chrono::seconds(1));
  ASSERT_NE(world_.agent, nullptr);
  carry(near_, far_, false);  // what was said when the line fell silent
  run_until([&] { return client_->lost().has_value(); });
  EXPECT_EQ(world_.agent, nullptr) << "its task may run elsewhere from now on, and still runs here";
  EXPECT_LE(world_.env.now() - last_heard, 2 * kLease + std::chrono::seconds(5));
}

TEST_F(RemoteAgentTest, WhatWasToldLastHasRenewedTheLease) {
  run_until([&] { return client_->ready(); });
  run_for(kLease / 4);  // between two keepalives
  client_->send(launch_of(1));
  ASSERT_TRUE(world_.env.loop().turn(world_.env.now()));
  way_ = Way::there_alone;  // it starts, and no answer comes back
  run_for(std::chrono::milliseconds(300));
  cut();
  run_until([&] { return client_->lost().has_value(); });
  EXPECT_EQ(world_.agent, nullptr) << "its task may run elsewhere from now on, and still runs here";
}

TEST_F(RemoteAgentTest, AnAgentThatIsReachedAgainInTimeGoesOn) {
  client_->send(launch_of(1));
  run_until([&] { return reports_.started[1] == 1; });
  cut();
  run_for(kLease / 2);
  way_ = Way::both;
  run_for(2 * kLease);
  EXPECT_FALSE(client_->lost());
  EXPECT_NE(world_.agent, nullptr);
  EXPECT_TRUE(reports_.ended.empty());
}

TEST_F(RemoteAgentTest, WhatBrokeIsMadeAgainAtThePaceThatIsAskedFor) {
  client_ = RemoteAgent::through(
      world_.env,
      {.command = {"ssh"}, .agent_file = {}, .reconnect = std::chrono::milliseconds(200)}, kLease,
      kLease, side(1));
  cut();
  calls_ = 0;
  run_for(kLease / 2);
  EXPECT_GE(calls_, 20) << "10 s, by 0.3 s at most and what a step takes";
}

TEST_F(RemoteAgentTest, WhoIsSilentForGoodIsNotSpokenToForEver) {
  run_until([&] { return client_->ready(); });
  way_ = Way::there_alone;  // so each call reaches it, and none is answered
  const Mono last_heard = world_.env.now();
  run_until([&] { return client_->lost().has_value(); });
  EXPECT_LE(world_.env.now() - last_heard, 2 * kLease + std::chrono::seconds(5));
  EXPECT_EQ(world_.agent, nullptr);
}

/// By a seed of ./dev simulate: the agent was told to finish, and stayed until its lease had ended.
TEST(Relay, WhatTheRunnerSaidLastGoesToTheAgentThoughNobodyHearsTheAnswer) {
  os::FakeEnv kernel;
  os::FakeEnv agent(kernel, os::FakeEnv::On::another_machine, {1, 10});
  os::FakeProcess relay(kernel, agent, {2, 20}), runner(kernel, agent, {3, 30});
  const auto listener = agent.listen_local("/agent/socket");
  ASSERT_TRUE(listener);
  runner.start([&] { return runner.wait({}, Mono(std::chrono::hours(1))) ? 0 : 1; });
  auto [ours, theirs] = runner.connect_to(relay);
  relay.talk_by(std::move(theirs));
  relay.start([&] { return serve_stdio(relay, "/agent") ? 0 : 1; });
  ASSERT_TRUE(kernel.wait({}, kernel.now() + std::chrono::seconds(1)));
  auto end = agent.accept_local(*listener);
  ASSERT_TRUE(end && *end);
  ASSERT_TRUE(runner.write_some(ours, "finish\n"));
  ours.reset();
  ASSERT_TRUE(agent.write_some(**end, "alive\n"));
  ASSERT_TRUE(kernel.wait({}, kernel.now() + std::chrono::seconds(1)));
  os::ReadBuffer buffer;
  const auto got = agent.read_some(**end, buffer);
  ASSERT_TRUE(got && *got);
  EXPECT_EQ(std::string_view(buffer.data(), **got), "finish\n");
}

}  // namespace
}  // namespace berth::agent
