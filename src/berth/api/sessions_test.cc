#include "berth/api/sessions.h"

#include <gtest/gtest.h>

namespace berth::api {
namespace {

TEST(Sessions, ALinkIsGoodOnceAndItsCookieFromThenOn) {
  std::uint64_t last = 0;
  Sessions sessions([&] { return ++last; });
  const auto one = sessions.invite(), other = sessions.invite();
  EXPECT_NE(one, other);
  EXPECT_EQ(sessions.open("no such link"), "");
  EXPECT_EQ(sessions.open(""), "");
  const auto cookie = sessions.open(one);
  EXPECT_EQ(cookie.substr(0, 6), "berth-");
  std::uint64_t of_another = 9;
  Sessions another([&] { return ++of_another; });
  const auto its = another.open(another.invite());
  EXPECT_NE(its.substr(0, its.find('=')), cookie.substr(0, cookie.find('=')))
      << "one browser has both";
  EXPECT_EQ(cookie.find(one), std::string::npos)
      << "who has seen the link does not know the cookie";
  EXPECT_EQ(sessions.open(one), "");
  EXPECT_TRUE(sessions.knows(cookie));
  EXPECT_TRUE(sessions.knows("a=b; " + cookie + "; c=d"));
  EXPECT_NE(sessions.open(other), cookie);
  for (const std::string wrong : {"", "berth=", "berth", ";", "xberth=1"})
    EXPECT_FALSE(sessions.knows(wrong)) << wrong;
  EXPECT_FALSE(sessions.knows(cookie + "0"));
  EXPECT_FALSE(sessions.knows("berth=" + other)) << "a link is no cookie";
}

}  // namespace
}  // namespace berth::api
