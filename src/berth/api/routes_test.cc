#include "berth/api/routes.h"

#include "berth/base/url.h"

#include <gtest/gtest.h>

#include "berth/base/text.h"

namespace berth::api {
namespace {

std::vector<Route> some_routes() {
  const auto parts = [](const Request& request) { return Reply{200, join(request.parts, "|")}; };
  return {{{"GET", "/v1/runs/{run}", Role::read, "runs", "a run", "Run"}, parts},
          {{"GET", "/v1/runs/{run}/log", Role::read, "runs", "its log", "text/plain"}, parts},
          {{"POST", "/v1/runs/{run}/stop", Role::control, "runs", "stop it", "Said"}, parts},
          {{"GET", "/remove/{class}/{model}", Role::control, "runs", "remove one", "Said"}, parts}};
}

Reply ask(const std::string& method, const std::string& path) {
  return answer(some_routes(), {.method = method, .path = path, .body = ""});
}

TEST(Routes, PartsOfThePathAreDecodedOneByOne) {
  EXPECT_EQ(ask("GET", "/v1/runs/a%2Fb").body, "a/b");
  EXPECT_EQ(ask("GET", "/v1/runs/a/").body, "a") << "a slash at the end is none of its parts";
  EXPECT_EQ(ask("GET", "/remove/gold/a%20b").body, "gold|a b");
  for (const char* path : {"", "v1/runs/a", "/v1/runs", "/v1/runs/a/b", "/v1/runs/a/log/x", "/"})
    EXPECT_EQ(ask("GET", path).status, 404) << path;
}

TEST(Routes, AnotherMethodIsToldWhichOnesThereAre) {
  const Reply reply = ask("DELETE", "/v1/runs/a/stop");
  EXPECT_EQ(reply.status, 405);
  EXPECT_NE(reply.body.find("expected POST, got DELETE"), std::string::npos) << reply.body;
  ASSERT_EQ(reply.headers.size(), 1U);
  EXPECT_EQ(reply.headers[0], std::pair(std::string("Allow"), std::string("POST")));
}

TEST(Routes, HeadIsGetOfWhatChangesNothing) {
  EXPECT_EQ(ask("HEAD", "/v1/runs/a/log").status, 200);
  EXPECT_EQ(ask("HEAD", "/v1/runs/a/stop").status, 405);
  EXPECT_EQ(ask("HEAD", "/remove/gold/llama").status, 405);
}

TEST(Routes, AQueryHasTheNamesOfItsRouteAndNoOthers) {
  const auto read = read_query("run=a%2Fb&tail=1K&run=&", "run tail");
  ASSERT_TRUE(read) << read.error().message;
  const std::vector<std::pair<std::string, std::string>> wanted{
      {"run", "a/b"}, {"tail", "1K"}, {"run", ""}};
  EXPECT_EQ(*read, wanted);
  const std::string long_value(600, 'x');
  for (const std::string& query :
       std::vector<std::string>{"run", "=", "other=1", "ru=1", "run=" + long_value})
    EXPECT_FALSE(read_query(query, "run tail")) << query;
  EXPECT_EQ(read_query("a=1", "").error().message, "'a=1': expected NAME=VALUE of nothing");
}

TEST(Routes, DecodingKeepsWhatIsNoEscape) {
  EXPECT_EQ(percent_decoded("%2f%2F%zz%4%"), "//%zz%4%");
}

TEST(Routes, AFailureSaysTheSameForClientsOfTheReference) {
  EXPECT_EQ(failed({ErrorKind::impossible, "no \"H100\""}).body,
            R"({"error":"no \"H100\"","message":"no \"H100\"","kind":"impossible"})");
  EXPECT_EQ(failed({ErrorKind::impossible, ""}).status, 422);
  EXPECT_EQ(failed({ErrorKind::denied, ""}, 401).status, 401);
}

}  // namespace
}  // namespace berth::api
