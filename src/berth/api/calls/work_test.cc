#include "berth/api/calls/work.h"

#include <gtest/gtest.h>

namespace berth::api {
namespace {

Result<std::string> echo(Work& work) {
  return work.name() + "|" + work.value("tail") + "|" + work.request->body;
}

Result<std::string> parts(Work& work) {
  work.more = [left = 3]() mutable -> Result<std::optional<std::string>> {
    if (left == 0) return std::nullopt;
    return std::to_string(left--);
  };
  return "first ";
}

Result<std::string> refuse(Work&) {
  return fail(ErrorKind::busy, "not yet");
}

constexpr WorkCall kCalls[] = {
    {{"POST", "/v1/echo/{name}", Role::read, "g", "s", "text/plain", "Body", "tail"}, echo, false},
    {{"GET", "/v1/parts", Role::read, "g", "s", "Parts"}, parts, false},
    {{"GET", "/v1/refused", Role::read, "g", "s", "Parts"}, refuse, false},
};

ErrorKind kind_of(std::string_view method, std::string_view path) {
  const auto reply = call(routes_of(kCalls), method, path);
  return reply ? ErrorKind::corrupt : reply.error().kind;
}

TEST(Calls, HaveTheirPathQueryAndBody) {
  const auto reply = call(routes_of(kCalls), "POST", "/v1/echo/a%2Fb?tail=1K", "{}");
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "a/b|1K|{}");
  EXPECT_STREQ(reply->type, "text/plain");
}

TEST(Calls, AnAnswerInPartsIsReturnedWhole) {
  const auto reply = call(routes_of(kCalls), "GET", "/v1/parts");
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "first 321");
  EXPECT_STREQ(reply->type, "application/json");
}

TEST(Calls, ErrorsKeepTheirKind) {
  EXPECT_EQ(kind_of("GET", "/v1/refused"), ErrorKind::busy);
  EXPECT_EQ(kind_of("GET", "/v1/nothing"), ErrorKind::not_found);
  EXPECT_EQ(kind_of("PUT", "/v1/parts"), ErrorKind::usage);
  EXPECT_EQ(kind_of("POST", "/v1/echo/--help"), ErrorKind::usage);
  EXPECT_EQ(kind_of("POST", "/v1/echo/a?head=1"), ErrorKind::usage);
}

}  // namespace
}  // namespace berth::api
