#include "berth/remote/ssh/host.h"

#include <gtest/gtest.h>

#include <array>

#include "berth/testing/fake_env.h"

namespace berth::remote {
namespace {

/// A host whose pool grants whatever it is asked for, at once.
class HostTest : public ::testing::Test {
 protected:
  HostTest() {
    env_.program = [](const os::SpawnSpec&) { return os::FakeProgram{}; };
    env_.talk = [this](const os::SpawnSpec& spec, os::Fd end) {
      if (!spec.argv.back().contains("pool")) return;  // an agent that is told to end
      (void)env_.write_some(end, std::string(agent::kHere) + "\n");
      end_ = std::move(end);
    };
  }

  static cluster::Wish cores(std::int64_t count) {
    Resources resources;
    resources.set(Known::cpu, count * 1000);
    return {.requirements = {resources, 1}};
  }

  void answer() {
    std::array<char, 4096> buffer;
    while (end_) {
      const auto got = env_.read_some(end_, buffer);
      if (!got || !*got || **got == 0) return;
      said_.append(buffer.data(), **got);
      for (auto end = said_.find('\n'); end != std::string::npos; end = said_.find('\n')) {
        const auto call = agent::decode_pool_call(said_.substr(0, end));
        said_.erase(0, end + 1);
        ASSERT_TRUE(call);
        if (!std::holds_alternative<agent::AskLease>(*call)) continue;
        ++leases_;
        const auto& ask = std::get<agent::AskLease>(*call);
        agent::Leased leased{.directory = "/places/" + ask.id, .block = {}};
        leased.block.resources = ask.ask.resources;
        (void)env_.write_some(end_, agent::encode(agent::PoolAnswer(leased)) + "\n");
      }
    }
  }
  void run_for(Duration time) {
    for (const Mono until = env_.now() + time; env_.now() < until;) {
      ASSERT_TRUE(env_.loop().turn(env_.now() + std::chrono::milliseconds(50)));
      answer();
    }
  }

  os::FakeEnv env_;
  os::Fd end_;
  std::string said_;
  int leases_ = 0;  // that the pool was asked for
};

/// By a seed of ./dev simulate: it was asked for again without end, and what was wanted by then
/// never came.
TEST_F(HostTest, WhatWasGrantedToAnotherRequestIsLetGoAfterAWhile) {
  Host host(env_, {.name = "far", .words = {"ssh", "far", "--"}}, {}, {});
  EXPECT_FALSE(host.allocate(cores(2)));
  run_for(std::chrono::seconds(1));  // it is connected
  std::optional<cluster::Alloc> alloc;
  const auto ask = [&](std::int64_t count) {
    if (alloc) return;
    if (auto given = host.allocate(cores(count))) alloc = *std::move(given);
  };
  EXPECT_FALSE(host.allocate(cores(2)));
  run_for(std::chrono::milliseconds(100));  // granted, and by now one of three is wanted
  host.on_change([&] { ask(3); });
  ask(3);
  for (int i = 0; i < 30; ++i) {
    run_for(std::chrono::seconds(1));
    ask(3);
  }
  ASSERT_TRUE(alloc);
  EXPECT_EQ(alloc->block.resources.get(Known::cpu), 3000);
  EXPECT_EQ(leases_, 2) << "each once";
}

}  // namespace
}  // namespace berth::remote
