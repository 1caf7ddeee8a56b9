// What is said to an agent waits for it, and is said again where it may not have come.
#include "berth/agent/client/outbox.h"

#include "berth/testing/agent.h"

namespace berth::agent {
namespace {

class OutboxTest : public ::testing::Test {
 protected:
  /// What was sent since it was asked last, by method: "launch 1", "cancel 2", "keepalive".
  std::vector<std::string> sent() {
    std::vector<std::string> said;
    for (const auto& line : std::exchange(lines_, {})) {
      const auto call = decode_call(line);
      if (!call) return {call.error().message};
      if (const auto* launch = std::get_if<exec::Launch>(&*call))
        said.push_back(fmt::format("launch {}", launch->token.value));
      else if (const auto* cancel = std::get_if<exec::Cancel>(&*call))
        said.push_back(fmt::format("cancel {}", cancel->token.value));
      else if (const auto* up_to = std::get_if<Acknowledge>(&*call))
        said.push_back(fmt::format("acknowledge {}", up_to->up_to));
      else if (const auto* output = std::get_if<WantOutput>(&*call))
        said.push_back(fmt::format("output {}", output->wanted));
      else
        said.emplace_back(std::holds_alternative<Keepalive>(*call)       ? "keepalive"
                          : std::holds_alternative<exec::Abandon>(*call) ? "abandon"
                                                                         : "finish");
    }
    return said;
  }
  std::vector<exec::Ended> welcomed(std::vector<std::int64_t> tokens,
                                    std::int64_t revision = kProtocolRevision) {
    Welcome welcome;
    welcome.lease = std::chrono::seconds(30);
    welcome.revision = revision;
    for (const auto token : tokens) welcome.attempts.push_back({{token}, {token}});
    return outbox_.open(welcome, now_);
  }

  using Said = std::vector<std::string>;
  Mono now_{std::chrono::seconds(100)};
  std::vector<std::string> lines_;
  Outbox outbox_{[this](std::string_view line) { lines_.emplace_back(line); }};
};

TEST_F(OutboxTest, WhatIsSaidBeforeTheWelcomeWaitsForIt) {
  EXPECT_FALSE(outbox_.launch(launch_of(1)));
  outbox_.cancel({1}, true);
  EXPECT_EQ(sent(), Said{});
  EXPECT_TRUE(welcomed({}).empty());
  EXPECT_EQ(sent(), (Said{"launch 1", "cancel 1"}));
}

TEST_F(OutboxTest, WhatABrokenConnectionMayHaveSwallowedIsSaidAgain) {
  (void)welcomed({});
  for (const std::int64_t token : {1, 2, 3}) EXPECT_FALSE(outbox_.launch(launch_of(token)));
  outbox_.cancel({2}, true);
  outbox_.cancel({9}, false);
  EXPECT_EQ(sent(), (Said{"launch 1", "launch 2", "launch 3", "cancel 2", "cancel 9"}));
  outbox_.close();
  outbox_.ended({3});
  outbox_.send_last(Finish{});
  EXPECT_EQ(sent(), Said{});
  (void)welcomed({1});  // it knows the first
  EXPECT_EQ(sent(), (Said{"launch 2", "cancel 2", "finish"}));
}

TEST_F(OutboxTest, AnOlderAgentIsNotToldWhatItWouldPassOver) {
  exec::Launch selects = launch_of(1);
  selects.request.selection.memory_min = 30'000'000'000;
  EXPECT_FALSE(outbox_.launch(selects));
  const auto refused = welcomed({}, 0);
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].token, Token{1});
  selects.token = {2};
  EXPECT_EQ(outbox_.launch(selects)->cause, exec::Cause::cannot_start);
  outbox_.close();
  EXPECT_TRUE(welcomed({}, 0).empty()) << "it is refused once";
  EXPECT_EQ(sent(), Said{});
}

TEST_F(OutboxTest, ALaunchBeyondTheLongestLineIsRefused) {
  (void)welcomed({});
  const auto ended = outbox_.launch(launch_of(1, {std::string(17 << 20, 'x')}));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->detail, "its command and environment are too long");
}

TEST_F(OutboxTest, NoticesAreSentOnceWhenTheyAreDue) {
  (void)welcomed({});
  outbox_.send_notices(7, now_);
  EXPECT_EQ(sent(), (Said{"acknowledge 7", "keepalive"}));
  outbox_.want_output(false);
  outbox_.send_notices(std::nullopt, now_);
  outbox_.send_notices(std::nullopt, now_);
  EXPECT_EQ(sent(), Said{"output false"});
  EXPECT_EQ(outbox_.keepalive_at(), now_ + std::chrono::seconds(10));
  outbox_.close();
  (void)welcomed({});
  outbox_.send_notices(std::nullopt, now_);
  EXPECT_EQ(sent(), (Said{"output false", "keepalive"})) << "a new connection begins with output";
}

}  // namespace
}  // namespace berth::agent
