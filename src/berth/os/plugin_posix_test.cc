#include <gtest/gtest.h>

#include "berth/os/plugin.h"

namespace berth::os {
namespace {

TEST(Plugin, IsFoundBesideTheProgramByItsSymbol) {
  const auto env = posix_env();
  const auto found = load_plugin(*env, "berth-cloud.so", "berth_cloud_3");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_NE(*found, nullptr);
}

TEST(Plugin, OfAnotherBuildIsRefused) {
  const auto env = posix_env();
  const auto other = load_plugin(*env, "berth-cloud.so", "berth_cloud_0");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::corrupt);
  EXPECT_NE(other.error().message.find("another build"), std::string::npos);
}

TEST(Plugin, ThatIsMissingSaysWhereItWasLookedFor) {
  const auto env = posix_env();
  const auto none = load_plugin(*env, "berth-none.so", "none");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::not_found);
  EXPECT_NE(none.error().message.find("/../lib/berth"), std::string::npos);
}

}  // namespace
}  // namespace berth::os
