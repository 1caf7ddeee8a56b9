// Each message of an agent counts once, and is acknowledged once it is durable.
#include "berth/agent/client/inbox.h"

#include "berth/testing/agent.h"

namespace berth::agent {
namespace {

exec::Ended end_of(std::int64_t token) {
  exec::Ended ended;
  ended.task = {token};
  ended.token = {token};
  return ended;
}
Numbered ended(std::int64_t number, std::int64_t token) {
  return {number, end_of(token)};
}
Welcome welcome(std::int64_t first, std::vector<Attempt> attempts = {}) {
  Welcome welcome;
  welcome.first = first;
  welcome.attempts = std::move(attempts);
  return welcome;
}
std::size_t taken(Inbox& inbox) {
  std::vector<exec::FromWorker> messages;
  inbox.take_messages(messages);
  return messages.size();
}

TEST(Inbox, EachMessageCountsOnceWhateverConnectionBroughtIt) {
  Inbox inbox;
  inbox.expect({1});
  ASSERT_TRUE(inbox.welcome(welcome(5)));
  ASSERT_TRUE(inbox.receive(ended(5, 1)));
  ASSERT_TRUE(inbox.welcome(welcome(5)));
  ASSERT_TRUE(inbox.receive(ended(5, 1)));
  EXPECT_FALSE(inbox.idle());
  EXPECT_EQ(taken(inbox), 1U);
  EXPECT_TRUE(inbox.idle());
  EXPECT_EQ(inbox.receive(ended(7, 2)).error().kind, ErrorKind::corrupt) << "6 is missing";
}

TEST(Inbox, AnAgentThatForgotWhatNobodyAcknowledgedIsNotBelieved) {
  Inbox inbox;
  ASSERT_TRUE(inbox.welcome(welcome(1)));
  EXPECT_EQ(inbox.welcome(welcome(2)).error().kind, ErrorKind::corrupt);
}

TEST(Inbox, TheAttemptsOfAnAgentAreWaitedForUntilTheirEndIsHandedOut) {
  Inbox inbox;
  ASSERT_TRUE(inbox.welcome(welcome(1, {{{3}, {4}}})));
  EXPECT_TRUE(inbox.expects({4}));
  inbox.refuse(end_of(4));
  EXPECT_FALSE(inbox.idle());
  EXPECT_EQ(taken(inbox), 1U);
  EXPECT_TRUE(inbox.idle());
}

TEST(Inbox, WhatWasNotHandedOutOrIsHeldIsNotAcknowledged) {
  Inbox inbox;
  ASSERT_TRUE(inbox.welcome(welcome(1)));
  for (const std::int64_t number : {1, 2, 3}) ASSERT_TRUE(inbox.receive(ended(number, number)));
  inbox.acknowledge();
  EXPECT_EQ(inbox.take_acknowledgement(), std::nullopt);
  EXPECT_EQ(taken(inbox), 3U);
  inbox.hold({2});
  inbox.hold({77});  // nobody ended so
  ASSERT_TRUE(inbox.receive(ended(4, 4)));
  inbox.acknowledge();
  EXPECT_EQ(inbox.take_acknowledgement(), 1);
  EXPECT_EQ(inbox.take_acknowledgement(), std::nullopt) << "it was told";
  inbox.let_go({2});
  inbox.acknowledge();
  EXPECT_EQ(inbox.take_acknowledgement(), 3) << "4 was not handed out";
  ASSERT_TRUE(inbox.welcome(welcome(2)));
  EXPECT_EQ(inbox.take_acknowledgement(), 3) << "the agent did not hear of it";
}

}  // namespace
}  // namespace berth::agent
