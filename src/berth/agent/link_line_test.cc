// A link through a line that breaks, on a fake clock: who counts as gone, and when.
#include <gtest/gtest.h>

#include <algorithm>

#include "berth/agent/agent_testing.h"
#include "berth/agent/line.h"

namespace berth::agent {
namespace {

constexpr Duration kLease = std::chrono::seconds(20);

/// An agent behind a command that carries what is said, one way or both, or answers nobody.
class LinkLine : public ::testing::Test {
 protected:
  enum class Way : std::uint8_t { both, there_alone, held, none };

  LinkLine() : world_({.directory = "/runs/a-1/agents/1", .block = cores(4), .lease = kLease}) {
    world_.env.program = [](const os::SpawnSpec& spec) {
      return spec.argv[0] == "ssh" ? os::FakeProgram{} : takes(std::chrono::hours(1));
    };
    world_.env.talk = [this](const os::SpawnSpec&, os::Fd end) {
      if (way_ == Way::held || way_ == Way::none) return;
      (void)world_.env.write_some(end, std::string(kHere) + "\n");
      near_ = std::move(end);
      far_ = *world_.env.connect_local(world_.options.directory + "/socket");
    };
    world_.step = std::chrono::milliseconds(1);
    world_.open();
    link_ =
        Link::through(world_.env, {.command = {"ssh"}, .agent_file = {}}, kLease, kLease, side(1));
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
      world_.turn(link_.get(), heard_);
    }
  }
  void run_for(Duration time) {
    run_until([&, until = world_.env.now() + time] { return world_.env.now() >= until; });
  }

  FakeWorld world_;
  Way way_ = Way::both;
  os::Fd near_, far_;
  std::unique_ptr<Link> link_;
  Heard heard_;
};

TEST_F(LinkLine, AnAgentIsGivenUpOnlyWhenItHasGivenItselfUp) {
  link_->tell(launch_of(1));
  run_until([&] { return heard_.started[1] == 1; });
  const Mono cut_at = world_.env.now();
  cut();
  // It can be reached again before its lease has ended; its welcome is lost.
  run_for(kLease / 2);
  way_ = Way::there_alone;
  run_until([&] { return static_cast<bool>(far_); });
  run_for(std::chrono::seconds(1));
  cut();
  run_until([&] { return link_->lost().has_value(); });
  EXPECT_EQ(world_.agent, nullptr) << "its task may run elsewhere from now on, and still runs here";
  EXPECT_LE(world_.env.now() - cut_at, 2 * kLease + std::chrono::seconds(5));
  EXPECT_TRUE(link_->lost()->message.contains("and its lease of 20.0s is over"))
      << link_->lost()->message;
}

TEST_F(LinkLine, WhatWasLongOnItsWayMayHaveRenewedTheLease) {
  link_->tell(launch_of(1));
  run_until([&] { return heard_.started[1] == 1; });
  const Mono last_heard = world_.env.now();
  way_ = Way::held;
  run_for(kLease - std::chrono::seconds(1));
  ASSERT_NE(world_.agent, nullptr);
  carry(near_, far_, false);  // what was said when the line fell silent
  run_until([&] { return link_->lost().has_value(); });
  EXPECT_EQ(world_.agent, nullptr) << "its task may run elsewhere from now on, and still runs here";
  EXPECT_LE(world_.env.now() - last_heard, 2 * kLease + std::chrono::seconds(5));
}

TEST_F(LinkLine, AnAgentThatIsReachedAgainInTimeGoesOn) {
  link_->tell(launch_of(1));
  run_until([&] { return heard_.started[1] == 1; });
  cut();
  run_for(kLease / 2);
  way_ = Way::both;
  run_for(2 * kLease);
  EXPECT_FALSE(link_->lost());
  EXPECT_NE(world_.agent, nullptr);
  EXPECT_TRUE(heard_.ended.empty());
}

TEST_F(LinkLine, WhoIsSilentForGoodIsNotSpokenToForEver) {
  run_until([&] { return link_->ready(); });
  way_ = Way::there_alone;  // so each call reaches it, and none is answered
  const Mono last_heard = world_.env.now();
  run_until([&] { return link_->lost().has_value(); });
  EXPECT_LE(world_.env.now() - last_heard, 2 * kLease + std::chrono::seconds(5));
  EXPECT_EQ(world_.agent, nullptr);
}

}  // namespace
}  // namespace berth::agent
