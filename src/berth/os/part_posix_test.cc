#include <gtest/gtest.h>

#include "berth/os/part.h"

namespace berth::os {
namespace {

TEST(Part, IsFoundBesideTheProgramByItsSymbol) {
  const auto env = posix_env();
  const auto found = load_part(*env, "berth-cloud.so", "berth_cloud_1");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_NE(*found, nullptr);
}

TEST(Part, OfAnotherBuildIsRefused) {
  const auto env = posix_env();
  const auto other = load_part(*env, "berth-cloud.so", "berth_cloud_0");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::corrupt);
  EXPECT_NE(other.error().message.find("another build"), std::string::npos);
}

TEST(Part, ThatIsMissingSaysWhereItWasLookedFor) {
  const auto env = posix_env();
  const auto none = load_part(*env, "berth-none.so", "none");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::not_found);
  EXPECT_NE(none.error().message.find("/../lib/berth"), std::string::npos);
}

}  // namespace
}  // namespace berth::os
