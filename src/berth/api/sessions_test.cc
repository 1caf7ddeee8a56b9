#include "berth/api/sessions.h"

#include <gtest/gtest.h>

namespace berth::api {
namespace {

TEST(Sessions, ALinkIsGoodOnceAndItsCookieFromThenOn) {
  std::uint64_t last = 0;
  Sessions sessions([&] { return ++last; });
  const auto one = sessions.invite(Role::control), other = sessions.invite(Role::read);
  EXPECT_NE(one, other);
  EXPECT_EQ(sessions.open("no such link"), "");
  EXPECT_EQ(sessions.open(""), "");
  const auto cookie = sessions.open(one);
  EXPECT_EQ(cookie.substr(0, 6), "berth-");
  std::uint64_t of_another = 9;
  Sessions another([&] { return ++of_another; });
  const auto its = another.open(another.invite(Role::read));
  EXPECT_NE(its.substr(0, its.find('=')), cookie.substr(0, cookie.find('=')))
      << "one browser has both";
  EXPECT_EQ(cookie.find(one), std::string::npos)
      << "who has seen the link does not know the cookie";
  EXPECT_EQ(sessions.open(one), "");
  EXPECT_EQ(sessions.role(cookie), Role::control);
  EXPECT_EQ(sessions.role("a=b; " + cookie + "; c=d"), Role::control);
  const auto reader = sessions.open(other);
  EXPECT_NE(reader, cookie);
  EXPECT_EQ(sessions.role(reader), Role::read) << "the link's role is the cookie's";
  EXPECT_EQ(sessions.role(reader + "; " + cookie), Role::control);
  EXPECT_EQ(sessions.role(sessions.enter(Role::read)), Role::read);
  for (const std::string wrong : {"", "berth=", "berth", ";", "xberth=1"})
    EXPECT_EQ(sessions.role(wrong), Role::none) << wrong;
  EXPECT_EQ(sessions.role(cookie + "0"), Role::none);
  EXPECT_EQ(sessions.role("berth=" + other), Role::none) << "a link is no cookie";
}

}  // namespace
}  // namespace berth::api
