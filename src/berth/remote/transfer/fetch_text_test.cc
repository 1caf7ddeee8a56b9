#include "berth/remote/transfer/fetch_text.h"

#include <gtest/gtest.h>

#include "berth/testing/fake_env.h"

namespace berth::remote {
namespace {

/// Gives its pieces one a step, then the reply; without a reply it goes on for ever.
class PiecesSession final : public HttpSession {
 public:
  std::vector<std::string> pieces;
  std::optional<HttpReply> reply;
  std::string asked;

  void begin(HttpRequest request) override {
    asked = request.method + " " + request.url;
    take_ = std::move(request.take);
  }
  std::optional<HttpReply> step() override {
    if (at_ == pieces.size()) return reply;
    const bool goes_on = take_({.status = 200}, pieces[at_++]);
    return goes_on ? std::nullopt : std::optional(HttpReply{.status = 200, .error = "ended"});
  }
  HttpWaits waits() override { return {}; }

 private:
  std::function<bool(const HttpReply&, std::string_view)> take_;
  std::size_t at_ = 0;
};

std::string failure_of(os::FakeEnv& env, PiecesSession& session, ErrorKind kind) {
  const auto fetched = fetch_text(env, session, {.url = "http://h/q?secret"}, {.most_bytes = 8});
  if (fetched) return "";
  EXPECT_EQ(fetched.error().kind, kind);
  return fetched.error().message;
}

TEST(FetchText, GivesWhatTheServerAnswers) {
  os::FakeEnv env;
  PiecesSession session;
  session.pieces = {"ab", "cd"};
  session.reply = HttpReply{.status = 200};
  const auto fetched = fetch_text(env, session, {.url = "http://h/q"});
  ASSERT_TRUE(fetched);
  EXPECT_EQ(fetched->body, "abcd");
  EXPECT_EQ(session.asked, "GET http://h/q");
  PiecesSession refused;
  refused.reply = HttpReply{.status = 400, .body = "no"};
  EXPECT_EQ(fetch_text(env, refused, {.url = "http://h/q"})->body, "no");
  EXPECT_EQ(fetch_text(env, refused, {.url = "http://h/q"})->status, 400);
}

TEST(FetchText, EveryAnswerHasItsBounds) {
  os::FakeEnv env;
  PiecesSession large;
  large.pieces = {"12345678", "9"};
  EXPECT_EQ(failure_of(env, large, ErrorKind::io), "http://h/q?…: it answers more than 8 B");
  PiecesSession full;
  full.pieces = {"12345678"};
  full.reply = HttpReply{.status = 200};
  EXPECT_EQ(failure_of(env, full, ErrorKind::io), "");
  PiecesSession silent;
  const Mono before = env.now();
  EXPECT_EQ(failure_of(env, silent, ErrorKind::io), "http://h/q?…: no whole answer within 30.0s");
  EXPECT_GE(env.now() - before, std::chrono::seconds(30));
  EXPECT_LT(env.now() - before, std::chrono::seconds(31));
  PiecesSession broken;
  broken.reply = HttpReply{.error = "Connection refused"};
  EXPECT_EQ(failure_of(env, broken, ErrorKind::io), "http://h/q?…: Connection refused");
  env.stops = 1;
  PiecesSession stopped;
  EXPECT_EQ(failure_of(env, stopped, ErrorKind::interrupted), "http://h/q?…: stopped");
}

}  // namespace
}  // namespace berth::remote
