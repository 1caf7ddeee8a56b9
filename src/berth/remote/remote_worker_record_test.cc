#include "berth/remote/remote_worker_record.h"

#include <gtest/gtest.h>

#include "berth/testing/fake_env.h"

namespace berth::remote {
namespace {

using std::chrono::seconds;

/// One whose boots differ.
class BootedEnv final : public os::FakeEnv {
 public:
  std::string boot = "first";
  std::string boot_id() override { return boot; }
};

TEST(RemoteWorkerRecord, TimeLeftIsOfTheLeaseSinceTheLastWordThatMayHaveBeenSaid) {
  BootedEnv env;
  ASSERT_TRUE(env.make_directory("/place", 0700));
  EXPECT_EQ(recorded_time_left(env, "/place", seconds(0)), std::nullopt);
  ASSERT_TRUE(record_contact(env, "/place", seconds(90)));
  EXPECT_EQ(recorded_time_left(env, "/place", seconds(0)), seconds(120));
  env.freeze(seconds(100));
  EXPECT_EQ(recorded_time_left(env, "/place", seconds(0)), seconds(20));
  EXPECT_EQ(recorded_time_left(env, "/place", seconds(300)), seconds(230))
      << "one that outlives it";
  env.suspended = seconds(30);
  EXPECT_EQ(recorded_time_left(env, "/place", seconds(0)), seconds(0))
      << "a lease goes on in sleep";
}

TEST(RemoteWorkerRecord, OfThisMachineStartedAnewTheTimeSinceThenIsKnown) {
  BootedEnv env;
  ASSERT_TRUE(env.make_directory("/place", 0700));
  ASSERT_TRUE(record_contact(env, "/place", seconds(90)));
  env.boot = "second";
  env.freeze(std::chrono::hours(1));
  const Duration up = env.boot_clock().time_since_epoch();
  EXPECT_EQ(recorded_time_left(env, "/place", up + seconds(7)), seconds(7 + 30));
  ASSERT_TRUE(env.replace_file("/place/contact", "third another-host 0 90000\n", 0600));
  EXPECT_EQ(recorded_time_left(env, "/place", seconds(0)), seconds(120)) << "nothing is known";
}

TEST(RemoteWorkerRecord, AttemptsAreThereUntilTheyAreForgotten) {
  BootedEnv env;
  ASSERT_TRUE(env.make_directory("/place", 0700));
  ASSERT_TRUE(record_attempt(env, "/place", {7}, {{"/a b", "/c"}, false}));
  ASSERT_TRUE(record_attempt(env, "/place", {8}, {}));
  const auto both = recorded_attempts(env, "/place").value();
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].token, Token{7});
  EXPECT_EQ(both[0].stage_out.paths, (std::vector<std::string>{"/a b", "/c"}));
  EXPECT_FALSE(both[0].stage_out.if_stopped);
  EXPECT_TRUE(both[1].stage_out.if_stopped);
  forget_attempt(env, "/place", {7});
  EXPECT_EQ(recorded_attempts(env, "/place")->size(), 1U);
}

}  // namespace
}  // namespace berth::remote
