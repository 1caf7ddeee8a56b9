#include "berth/run/trials/enqueued.h"

#include <gtest/gtest.h>

#include "berth/run/state/layout.h"
#include "berth/testing/fake_env.h"

namespace berth::run {
namespace {

using experiment::Values;

class EnqueuedTest : public ::testing::Test {
 protected:
  EnqueuedTest() { EXPECT_TRUE(env_.make_directory("/run", 0700)); }
  void leave(const std::string& x) {
    EXPECT_TRUE(leave_point(env_, "/run", {{"x", x}}));
    env_.freeze(std::chrono::milliseconds(1));
  }
  Enqueued runner() { return {env_, enqueued_directory("/run")}; }
  static std::string x_of(const Result<std::optional<Values>>& point) {
    return !point ? point.error().message : *point ? (*point)->at(0).second : "none";
  }
  os::FakeEnv env_;
};

TEST_F(EnqueuedTest, PointsComeInTheirOrderAndOnce) {
  Enqueued points = runner();
  EXPECT_EQ(x_of(points.take({1})), "none");
  leave("0.5");
  leave("7");
  EXPECT_EQ(x_of(points.take({1})), "0.5");
  EXPECT_EQ(x_of(points.take({2})), "7");
  EXPECT_EQ(x_of(points.take({3})), "none");
  points.forget_taken();
  EXPECT_TRUE(env_.list("/run/enqueued")->empty());
}

/// The trial of the first is recorded, that of the second is not.
TEST_F(EnqueuedTest, ARunnerThatDiesLosesNoneAndDoublesNone) {
  leave("1");
  leave("2");
  leave("3");
  Enqueued dies = runner();
  EXPECT_EQ(x_of(dies.take({5})), "1");
  EXPECT_EQ(x_of(dies.take({6})), "2");
  Enqueued next = runner();
  ASSERT_TRUE(next.take_over(5));
  EXPECT_EQ(x_of(next.take({6})), "2");
  EXPECT_EQ(x_of(next.take({7})), "3");
  EXPECT_EQ(x_of(next.take({8})), "none");
}

}  // namespace
}  // namespace berth::run
