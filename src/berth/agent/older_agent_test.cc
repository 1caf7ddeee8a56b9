// A client to an agent of an older Berth, word for word as that one spoke.
#include <algorithm>

#include "berth/os/loop.h"
#include "berth/testing/agent.h"

namespace berth::agent {
namespace {

constexpr std::string_view kOldWelcome =
    R"({"jsonrpc":"2.0","id":"hello","result":{"version":1,"id":"1-2","block":)"
    R"("gpu=1,gpu_slots=13,gpu_mem=32000000000,cpu=500 0:0:500 1:0:32000000000:13:13:1:0:gpu-1",)"
    R"("alloc":1283512803357562322,"lease_ns":30000000000,"outlive":true,"attempts":[],)"
    R"("first":1}})";

struct OldAgent {
  OldAgent()
      : listener(*env.listen_local("/place/socket")),
        stream(env, [this](Status told) { status = std::move(told); }) {
    client = AttachedAgent::attach(env, "/place", side(1));
    stream.open(**env.accept_local(listener));
  }
  /// Both once; the lines that the agent is sent are kept.
  void turn() {
    ASSERT_TRUE(env.loop().turn(env.now()));
    ASSERT_TRUE(status);
    std::vector<exec::FromWorker> messages;
    client->take_messages(messages);
    reports.take(messages);
    while (const auto line = stream.next()) lines.emplace_back(*line);
  }
  bool was_told(std::string_view part) const {
    return std::ranges::any_of(lines, [&](const auto& line) { return line.contains(part); });
  }

  os::FakeEnv env;
  os::Fd listener;
  Status status;
  LineStream stream;
  std::unique_ptr<AgentClient> client;
  Reports reports;
  std::vector<std::string> lines;
};

exec::Launch selecting(std::int64_t token, machine::DeviceSelection selection) {
  exec::Launch launch = launch_of(token);
  launch.request.selection = std::move(selection);
  return launch;
}

TEST(OlderAgent, IsNotToldWhatItWouldPassOver) {
  for (const bool before_its_welcome : {true, false}) {
    OldAgent old;
    const auto welcome = [&] {
      old.stream.send_line(kOldWelcome);
      for (int i = 0; i < 3; ++i) old.turn();
      ASSERT_TRUE(old.client->ready());
    };
    if (!before_its_welcome) welcome();
    old.client->send(launch_of(1));
    old.client->send(selecting(2, {.slot_sizes = {13, 31}}));
    old.client->send(selecting(3, {.memory_min = 30'000'000'000}));
    if (before_its_welcome) welcome();
    for (int i = 0; i < 3; ++i) old.turn();
    EXPECT_TRUE(old.was_told(R"("token":1,)"));
    EXPECT_TRUE(old.was_told(R"("slot_sizes":[13,31])"));
    EXPECT_FALSE(old.was_told(R"("token":3,)"));
    EXPECT_EQ(old.reports.ended, (std::map<std::int64_t, int>{{3, 1}}));
    EXPECT_EQ(old.reports.ends[3].cause, exec::Cause::cannot_start);
    EXPECT_EQ(
        old.reports.ends[3].detail,
        "its berth-agent is of an older Berth, which cannot choose GPUs as the task asks: use the "
        "one of this version");
    EXPECT_FALSE(old.client->lost());
  }
}

TEST(OlderAgent, WhatIsCancelledBeforeItsWelcomeDoesNotRunOn) {
  OldAgent old;
  old.client->send(launch_of(1));
  old.client->send(exec::Cancel{{1}});
  old.stream.send_line(kOldWelcome);
  for (int i = 0; i < 6; ++i) old.turn();
  const auto at = [&](std::string_view part) {
    const auto found = std::ranges::find_if(old.lines.rbegin(), old.lines.rend(),
                                            [&](const auto& line) { return line.contains(part); });
    return old.lines.rend() - found;
  };
  EXPECT_LT(at(R"("method":"launch")"), at(R"("method":"cancel")"));
}

}  // namespace
}  // namespace berth::agent
