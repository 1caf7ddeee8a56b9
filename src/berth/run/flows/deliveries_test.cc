// What tasks wrote, on its way to its places while other threads are slow.
#include "berth/run/flows/deliveries.h"

#include <gtest/gtest.h>

#include "berth/testing/fake_env.h"

namespace berth::run {
namespace {

constexpr Duration kTakes = std::chrono::minutes(1);

class DeliveriesTest : public ::testing::Test {
 protected:
  DeliveriesTest() {
    for (const auto* path : {"/state", "/work"}) (void)env_.make_directory(path, 0700);
    env_.background_takes = kTakes;
    context_.env = &env_;
    context_.store = store::memory_store();
  }
  static Delivery delivery_of(std::int64_t token) {
    return {.spec = {.name = "s", .outputs = {{.name = "o", .path = "out"}}},
            .folder = "/work",
            .directory = fmt::format("/state/tasks/1-{}", token)};
  }
  /// The attempt of the task wrote this.
  void deliver(std::int64_t token, const std::string& wrote) {
    last_ = {token};
    Delivery delivery = delivery_of(token);
    env_.put(delivery.directory + "/out", wrote);
    ASSERT_TRUE(deliveries_.deliver({{1}, {token}, "s"}, std::move(delivery)));
  }
  std::vector<Deliveries::Delivered> turn_after(Duration time) {
    env_.freeze(time);
    return deliveries_.turn();
  }

  os::FakeEnv env_;
  Context context_;
  Token last_;
  FlowRun run_{.context = context_,
               .env = env_,
               .directory = "/state",
               .record = {},
               .program = {},
               .cache = *fileset::ObjectStore::open(env_, "/state/cache")};
  Deliveries deliveries_{run_, [this](TaskNumber, Token token) { return token == last_; }};
};

TEST_F(DeliveriesTest, WhatATaskWroteIsGatheredAndThenPlaced) {
  deliver(1, "one");
  EXPECT_EQ(deliveries_.oldest()->what, "reading the outputs of /work/out");
  EXPECT_TRUE(turn_after(kTakes).empty());
  EXPECT_TRUE(deliveries_.is_placing({1}));
  EXPECT_FALSE(deliveries_.is_placing({2}));
  EXPECT_EQ(deliveries_.oldest()->what, "copying /work/out");
  const auto delivered = turn_after(kTakes);
  ASSERT_EQ(delivered.size(), 1U);
  EXPECT_TRUE(delivered[0].status);
  EXPECT_TRUE(delivered[0].delivery.gathered);
  EXPECT_EQ(delivered[0].attempt.token, Token{1});
  EXPECT_EQ(*env_.find("/work/out"), "one");
  EXPECT_FALSE(deliveries_.busy() || deliveries_.is_placing({1}));
}

TEST_F(DeliveriesTest, OfTwoAttemptsTheLastIsPlacedAfterTheFirst) {
  deliver(1, "one");
  EXPECT_TRUE(turn_after(kTakes).empty());
  env_.background_takes = std::chrono::seconds(1);
  deliver(2, "two");  // the first was given up on its way
  EXPECT_TRUE(turn_after(std::chrono::seconds(1)).empty());
  EXPECT_EQ(*env_.find("/work/out"), "one") << "which might come last";
  EXPECT_TRUE(turn_after(kTakes).empty());
  const auto delivered = turn_after(std::chrono::seconds(1));
  ASSERT_EQ(delivered.size(), 1U);
  EXPECT_EQ(delivered[0].attempt.token, Token{2});
  EXPECT_EQ(*env_.find("/work/out"), "two");
}

TEST_F(DeliveriesTest, WhatAGivenUpAttemptWroteIsNotPlaced) {
  deliver(1, "one");
  ASSERT_TRUE(deliveries_.deliver({{1}, {3}, "s"}, delivery_of(3))) << "and wrote nothing";
  last_ = {2};
  EXPECT_TRUE(turn_after(kTakes).empty());
  EXPECT_FALSE(deliveries_.busy());
  EXPECT_EQ(env_.find("/work/out"), nullptr);
}

TEST_F(DeliveriesTest, WhatTakesTooLongIsLeftWithItsOutputsAndNotToldAgain) {
  deliver(1, "one");
  EXPECT_TRUE(turn_after(kTakes).empty());
  EXPECT_TRUE(deliveries_.leave(env_.now() - kTakes).empty()) << "it has not been so long";
  const auto left = deliveries_.leave(env_.now());
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].outputs.size(), 1U);
  EXPECT_EQ(left[0].note.find("s: it took more than "), 0U) << left[0].note;
  EXPECT_TRUE(turn_after(kTakes).empty());
  EXPECT_TRUE(deliveries_.leave(env_.now()).empty());
}

TEST_F(DeliveriesTest, WhatWasNotWrittenFailsTheDelivery) {
  deliver(1, "one");
  last_ = {2};
  ASSERT_TRUE(deliveries_.deliver({{1}, {2}, "s"}, delivery_of(2)));
  const auto delivered = turn_after(kTakes);
  ASSERT_EQ(delivered.size(), 1U);
  EXPECT_EQ(delivered[0].status.error().message, "it did not write out.o: out");
  EXPECT_FALSE(delivered[0].delivery.gathered);
}

}  // namespace
}  // namespace berth::run
