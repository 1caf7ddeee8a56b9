// What is known here of a machine elsewhere is kept as long as something may run there.
#include "berth/remote/outpost.h"

#include <gtest/gtest.h>

#include "berth/agent/agent_testing.h"
#include "berth/remote/outpost_record.h"

namespace berth::remote {
namespace {

/// An agent behind a line that can be cut.
class OutpostTest : public ::testing::Test {
 protected:
  OutpostTest() {
    os::FakeEnv& env = world_.env;
    env.program = [](const os::SpawnSpec& spec) {
      return spec.argv[0] == "ssh" ? os::FakeProgram{} : agent::takes(std::chrono::hours(1));
    };
    env.talk = [this, &env](const os::SpawnSpec&, os::Fd end) {
      if (cut_) return;
      (void)env.write_some(end, std::string(agent::kHere) + "\n");
      near_ = std::move(end);
      far_ = *env.connect_local(world_.options.directory + "/socket");
    };
    world_.open();
    outpost_ = Outpost::open(env, {.place = {{.name = "far", .words = {"ssh"}}, "/far"},
                                   .agent = {},
                                   .directory = directory_,
                                   .root = "/run",
                                   .store = "/store",
                                   .surroundings = {}});
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
      world_.turn(outpost_.get(), heard_);
    }
  }
  void run_one() {
    exec::Launch launch = agent::launch_of(1);
    launch.there = true;
    outpost_->tell(launch);
    run_until([&] { return heard_.started[1] == 1; });
  }

  const std::string directory_ = "/run/outposts/1";
  agent::FakeWorld world_;
  bool cut_ = false;
  os::Fd near_, far_;
  std::unique_ptr<Outpost> outpost_;
  agent::Heard heard_;
};

TEST_F(OutpostTest, WhatMayRunBehindACutConnectionIsNotForgottenAtAStop) {
  run_one();
  cut_ = true;
  near_.reset();
  far_.reset();
  run_until([&] { return outpost_->cut().has_value(); });
  outpost_->finish();
  const auto attempts = recorded_attempts(world_.env, directory_);
  ASSERT_EQ(attempts.size(), 1U) << "nobody would know that it may still run there";
  EXPECT_EQ(attempts[0].token, Token{1});
  EXPECT_TRUE(world_.env.find(directory_ + "/place.json"));
}

TEST_F(OutpostTest, WhoHeardThatItIsOverIsForgotten) {
  run_one();
  outpost_->tell(exec::Abandon{});
  run_until([&] { return heard_.ended[1] == 1; });
  outpost_->acknowledge();
  outpost_->finish();
  EXPECT_FALSE(world_.env.find(directory_ + "/place.json"));
}

}  // namespace
}  // namespace berth::remote
