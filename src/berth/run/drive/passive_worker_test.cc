#include "berth/run/drive/passive_worker.h"

#include <gtest/gtest.h>

#include "berth/os/loop.h"
#include "berth/testing/fake_env.h"

namespace berth::run {
namespace {

using Messages = std::vector<exec::FromWorker>;

TEST(Answer, IsKeptAsTheTrialWouldHavePrintedIt) {
  struct Case {
    std::string told, kept;
  };
  const std::vector<std::string> one{"acc"}, two{"acc", "loss"};
  const Case kOne[] = {{" 0.5\n", "::berth acc=0.5\n"},
                       {"acc=1 x=2", "::berth acc=1 x=2\n"},
                       {"x=2 0.5", "::berth x=2 acc=0.5\n"},
                       {"#Auptimizer:3", "::berth acc=3\n"},
                       {"nan", "::berth acc=nan\n"},
                       {"#Auptimizer: 3,4,5", "::berth acc=3 score_2=4 score_3=5\n"},
                       {"failed", "failed: \n"},
                       {"failed: no power", "failed: no power\n"},
                       {"failed no\tpower", "failed: no\\x09power\n"}};
  for (const auto& [told, kept] : kOne) EXPECT_EQ(read_answer(told, one).value_or("none"), kept);
  for (const auto* told : {"1 2", "1,2", "acc=1 loss=2"})
    EXPECT_EQ(read_answer(told, two).value_or("none"), "::berth acc=1 loss=2\n");
  EXPECT_EQ(read_answer("1", two).value_or("none"), "::berth acc=1\n");
  for (const auto* told : {"", " ", "x", "1 2", "x=1", "acc=", "=1", "failure"})
    EXPECT_FALSE(read_answer(told, one)) << told;
  EXPECT_FALSE(read_answer("1 2 3", two));
  EXPECT_FALSE(read_answer(std::string(10'000, '1'), one));
}

class PassiveWorkerTest : public ::testing::Test {
 protected:
  PassiveWorkerTest() : worker_(env_, "/answers", [this](const exec::Launch&) { ++asked_; }) {}

  void launch(std::int64_t number, Duration timeout = {}) {
    worker_.send(launch_of(number, number + 100, timeout));
  }
  static exec::Launch launch_of(std::int64_t number, std::int64_t token, Duration timeout = {}) {
    exec::Launch launch;
    launch.task = {number};
    launch.token = {token};
    launch.timeout = timeout;
    return launch;
  }
  void told(std::int64_t number, std::string_view text) {
    ASSERT_TRUE(leave_answer(env_, "/answers", {number}, *read_answer(text, {"acc"})));
  }
  /// All that it says until the clock has come so far.
  Messages heard(Duration within = std::chrono::seconds(1)) {
    Messages messages;
    for (const Mono until = env_.now() + within; env_.now() < until;) {
      EXPECT_TRUE(env_.loop().turn(until));
      worker_.take_messages(messages);
    }
    return messages;
  }
  static const exec::Ended& end(const Messages& messages) {
    return std::get<exec::Ended>(messages.back());
  }

  os::FakeEnv env_;
  int asked_ = 0;
  PassiveWorker worker_;
};

TEST_F(PassiveWorkerTest, WaitsForItsAnswer) {
  launch(1);
  EXPECT_EQ(heard().size(), 1U) << "it has started";
  EXPECT_EQ(asked_, 1);
  EXPECT_FALSE(worker_.idle());
  told(1, "0.5");
  const auto messages = heard();
  ASSERT_EQ(messages.size(), 3U);
  EXPECT_EQ(std::get<exec::Output>(messages[0]).bytes, "::berth acc=0.5\n");
  EXPECT_EQ(std::get<exec::Metric>(messages[1]).value, 0.5);
  EXPECT_EQ(end(messages).cause, exec::Cause::ok);
  EXPECT_EQ(end(messages).token.value, 101);
  EXPECT_TRUE(worker_.idle());
}

TEST_F(PassiveWorkerTest, KeepsTheAnswerUntilItsEndIsDurable) {
  launch(1);
  told(1, "0.5");
  EXPECT_EQ(heard().size(), 4U);
  EXPECT_EQ(answered(env_, "/answers").size(), 1U);
  PassiveWorker next(env_, "/answers", [](const exec::Launch&) { FAIL() << "asked again"; });
  next.send(launch_of(1, 200));
  Messages messages;
  ASSERT_TRUE(env_.loop().turn());
  next.take_messages(messages);
  ASSERT_EQ(messages.size(), 4U);
  EXPECT_EQ(end(messages).token.value, 200);
  worker_.acknowledge();
  EXPECT_TRUE(answered(env_, "/answers").empty());
  EXPECT_FALSE(env_.loop().next_timer()) << "nothing is left to wait for";
}

TEST_F(PassiveWorkerTest, KeepsAnAnswerThatItHasReadAndNotReported) {
  launch(1);
  told(1, "0.5");
  ASSERT_TRUE(env_.loop().turn());
  worker_.acknowledge();
  EXPECT_EQ(answered(env_, "/answers").size(), 1U);
  Messages messages;
  worker_.take_messages(messages);
  ASSERT_EQ(messages.size(), 4U);
  worker_.acknowledge();
  EXPECT_TRUE(answered(env_, "/answers").empty());
}

TEST_F(PassiveWorkerTest, FailedStoppedAndLate) {
  for (const std::int64_t number : {1, 2, 3}) launch(number);
  launch(4, std::chrono::milliseconds(2500));
  EXPECT_EQ(heard().size(), 4U);
  told(1, "failed: no power");
  auto messages = heard();
  EXPECT_EQ(end(messages).cause, exec::Cause::exit_code);
  EXPECT_EQ(end(messages).detail, "no power");
  worker_.send(exec::Cancel{{102}});
  worker_.send(exec::Cancel{{999}});
  messages = heard();
  ASSERT_EQ(messages.size(), 2U) << "one stopped, one late";
  EXPECT_EQ(std::get<exec::Ended>(messages[0]).cause, exec::Cause::stopped);
  EXPECT_EQ(end(messages).cause, exec::Cause::time_limit);
  worker_.send(exec::Abandon{});
  EXPECT_EQ(end(heard()).token.value, 103);
  EXPECT_TRUE(worker_.idle());
}

}  // namespace
}  // namespace berth::run
