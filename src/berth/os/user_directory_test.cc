#include "berth/os/user_directory.h"

#include <gtest/gtest.h>

#include "berth/testing/fake_env.h"

namespace berth::os {
namespace {

TEST(UserDirectory, IsTheNamedOneElseInHomeElseNone) {
  FakeEnv env;
  env.variables = {};
  EXPECT_EQ(own_directory(env, kStateHome), std::nullopt);
  env.variables = {{"HOME", "/home/ada"}, {"XDG_CACHE_HOME", "/fast/cache"}};
  EXPECT_EQ(own_directory(env, kStateHome), "/home/ada/.local/state/berth");
  EXPECT_EQ(own_directory(env, kCacheHome), "/fast/cache/berth");
  EXPECT_EQ(own_directory(env, kConfigHome), "/home/ada/.config/berth");
  env.variables = {{"HOME", "home"}, {"XDG_STATE_HOME", "state"}};  // no absolute path
  EXPECT_EQ(own_directory(env, kStateHome), std::nullopt);
}

}  // namespace
}  // namespace berth::os
