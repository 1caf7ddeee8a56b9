// Fetches from servers that fail in each way, on a fake world.
#include "berth/remote/transfer/elsewhere.h"

#include <gtest/gtest.h>

#include "berth/base/units.h"
#include "berth/testing/fake_env.h"

namespace berth::remote {
namespace {

/// A server of one file; `faults` are what happens to the next requests.
struct FakeServer {
  enum class Fault : std::uint8_t { none, busy, cut, silent, lasting, missing };
  std::string body, etag = "\"1\"", modified{}, date{};
  std::vector<Fault> faults{};
  bool ranges = true;
  std::vector<HttpRequest> asked{};

  static std::string header(const HttpRequest& request, std::string_view name) {
    for (const auto& each : request.headers)
      if (each.starts_with(name)) return each.substr(name.size() + 2);
    return {};
  }

  HttpReply answer(const HttpRequest& request) {
    asked.push_back(request);
    const Fault fault = asked.size() <= faults.size() ? faults[asked.size() - 1] : Fault::none;
    if (fault == Fault::busy) return {.status = 503, .body = "later"};
    if (fault == Fault::missing) return {.status = 404};
    if (fault == Fault::silent) return {.error = "Connection refused"};
    if (fault == Fault::lasting) return {.error = "no such host", .lasting = true};
    HttpReply reply{.status = 200};
    if (!etag.empty()) reply.headers["etag"] = etag;
    if (!modified.empty()) reply.headers["last-modified"] = modified;
    if (!date.empty()) reply.headers["date"] = date;
    if (!etag.empty() && header(request, "If-None-Match") == etag) return {.status = 304};
    if (!modified.empty() && header(request, "If-Modified-Since") == modified)
      return {.status = 304};
    std::size_t from = 0;
    const std::string condition = header(request, "If-Range");
    const bool is_same =
        condition.empty() || (condition == etag && !etag.empty()) || condition == modified;
    if (ranges && !header(request, "Range").empty() && is_same) {
      from = static_cast<std::size_t>(
          *parse_integer(header(request, "Range").substr(6, header(request, "Range").size() - 7)));
      reply.status = 206;
      reply.headers["content-range"] =
          fmt::format("bytes {}-{}/{}", from, body.size() - 1, body.size());
    }
    const std::string rest = body.substr(from);
    reply.headers["content-length"] = fmt::format("{}", rest.size());
    if (request.method == "HEAD") return reply;
    const std::string sent = fault == Fault::cut ? rest.substr(0, rest.size() / 2) : rest;
    for (const char byte : sent)
      if (!request.take(reply, std::string_view(&byte, 1))) {
        reply.error = "the receiver failed";
        return reply;
      }
    if (fault == Fault::cut) reply.error = "the connection broke";
    return reply;
  }
};

FakeServer* g_server = nullptr;  // a Cloud is plain functions

class FakeSession final : public HttpSession {
 public:
  void begin(HttpRequest request) override { request_ = std::move(request); }
  std::optional<HttpReply> step() override { return g_server->answer(request_); }
  HttpWaits waits() override { return {}; }

 private:
  HttpRequest request_;
};

class ElsewhereTest : public ::testing::Test {
 protected:
  ElsewhereTest() {
    (void)env_.make_directory("/state", 0700);
    store_.emplace(*fileset::ObjectStore::open(env_, "/state/cache"));
    g_server = &server_;
  }
  ~ElsewhereTest() override { g_server = nullptr; }

  Result<std::string> fetch(const std::string& text = "https://host/file") {
    Elsewhere elsewhere(env_, cloud_);
    TransferProgress progress;
    BERTH_ASSIGN(const auto captured, elsewhere.fetch(*store_, *parse_url(text), progress));
    BERTH_TRY(store_->publish(captured.fileset, "/state/out", fileset::Publish::copies));
    return *env_.find("/state/out");
  }
  std::size_t asked() { return std::exchange(server_.asked, {}).size(); }

  os::FakeEnv env_;
  std::optional<fileset::ObjectStore> store_;
  FakeServer server_{.body = "0123456789"};
  Cloud cloud_{.open_session = []() -> std::unique_ptr<HttpSession> {
    return std::make_unique<FakeSession>();
  }};
};

using Fault = FakeServer::Fault;

TEST_F(ElsewhereTest, WhatHasNotChangedIsAskedForAndNotSent) {
  EXPECT_EQ(*fetch(), "0123456789");
  EXPECT_EQ(*fetch(), "0123456789");
  EXPECT_EQ(FakeServer::header(server_.asked.back(), "If-None-Match"), "\"1\"");
  server_.body = "another";
  server_.etag = "\"2\"";
  EXPECT_EQ(*fetch(), "another");
  server_.etag = "";  // who tells nothing is asked for all of it
  EXPECT_EQ(*fetch(), "another");
  server_.body = "";
  EXPECT_EQ(*fetch(), "");
}

/// What arrives when the file changes, with the same validators, after its first half was sent.
class ChangedFileTest : public ElsewhereTest {
 protected:
  std::string fetched_across_a_change(const std::string& url = "https://host/file") {
    server_.body = "aaaaaaaaaa";
    server_.asked.clear();
    server_.faults = {20, Fault::silent};
    server_.faults.front() = Fault::cut;
    EXPECT_FALSE(fetch(url));
    server_.faults.clear();
    server_.body = "bbbbbbbbbb";
    const auto content = fetch(url);
    return content ? *content : content.error().message;
  }
};

TEST_F(ChangedFileTest, AWeakDateDoesNotJoinTwoStates) {
  server_.etag = "";
  server_.modified = server_.date = "Sun, 06 Nov 1994 08:49:37 GMT";
  EXPECT_EQ(fetched_across_a_change(), "bbbbbbbbbb");
  server_.date = "Sun, 06 Nov 1994 08:50:30 GMT";
  EXPECT_EQ(fetched_across_a_change("https://host/2"), "bbbbbbbbbb");
  server_.date = "";
  EXPECT_EQ(fetched_across_a_change("https://host/3"), "bbbbbbbbbb");
  for (const auto& request : server_.asked) EXPECT_EQ(FakeServer::header(request, "If-Range"), "");
}

TEST_F(ChangedFileTest, AWeakETagDoesNotJoinTwoStates) {
  server_.etag = "W/\"1\"";
  EXPECT_EQ(fetched_across_a_change(), "bbbbbbbbbb");
  server_.modified = "Sun, 06 Nov 1994 08:49:37 GMT";
  server_.date = "Sun, 06 Nov 1994 08:49:38 GMT";
  EXPECT_EQ(fetched_across_a_change("https://host/2"), "bbbbbbbbbb");
}

TEST_F(ChangedFileTest, NoValidatorAtAllDoesNotJoinTwoStates) {
  server_.etag = "";
  EXPECT_EQ(fetched_across_a_change(), "bbbbbbbbbb");
}

TEST_F(ChangedFileTest, AChecksumJoinsPartsAndFindsAWrongOne) {
  server_.etag = "";
  server_.modified = server_.date = "Sun, 06 Nov 1994 08:49:37 GMT";
  const std::string sum = to_hex(sha256("bbbbbbbbbb"));
  EXPECT_EQ(fetched_across_a_change("https://host/file#sha256=" + sum), "bbbbbbbbbb");
}

TEST_F(ElsewhereTest, AStrongDateContinuesADownload) {
  server_.etag = "";
  server_.modified = "Sun, 06 Nov 1994 08:49:37 GMT";
  server_.date = "Sun, 06 Nov 1994 08:50:37 GMT";
  server_.faults = {Fault::cut};
  EXPECT_EQ(*fetch(), "0123456789");
  EXPECT_EQ(FakeServer::header(server_.asked.back(), "If-Range"), server_.modified);
  EXPECT_EQ(FakeServer::header(server_.asked.back(), "Range"), "bytes=5-");
}

TEST_F(ElsewhereTest, AFileWithAWeakDateIsFetchedAgain) {
  server_.etag = "";
  server_.modified = server_.date = "Sun, 06 Nov 1994 08:49:37 GMT";
  EXPECT_EQ(*fetch(), "0123456789");
  server_.body = "abcdefghij";  // within the same second
  EXPECT_EQ(*fetch(), "abcdefghij");
  server_.date = "Sun, 06 Nov 1994 08:59:37 GMT";
  EXPECT_EQ(*fetch(), "abcdefghij");
  EXPECT_EQ(FakeServer::header(server_.asked.back(), "If-Modified-Since"), "");
  EXPECT_EQ(*fetch(), "abcdefghij");
  EXPECT_EQ(FakeServer::header(server_.asked.back(), "If-Modified-Since"), server_.modified);
}

TEST_F(ElsewhereTest, AnswersThatMayPassAreAwaitedWithGrowingPauses) {
  server_.faults = {Fault::busy, Fault::silent, Fault::busy};
  const Mono began = env_.now();
  EXPECT_EQ(*fetch(), "0123456789");
  EXPECT_EQ(asked(), 4U);
  EXPECT_GE(env_.now() - began, std::chrono::milliseconds(1700));
  server_.faults = {100, Fault::busy};
  EXPECT_EQ(
      fetch().error().message,
      "https://host/file: the server answers 503 Service Unavailable, also when asked 6 times");
  EXPECT_EQ(asked(), 6U);
  for (const Fault fault : {Fault::missing, Fault::lasting}) {
    server_.faults = {fault};
    EXPECT_FALSE(fetch());
    EXPECT_EQ(asked(), 1U);
  }
}

TEST_F(ElsewhereTest, WhoGetsOnMayBeCutOffAnyNumberOfTimes) {
  server_.body = std::string(1U << 12, 'x');
  server_.faults = {11, Fault::cut};
  EXPECT_EQ(*fetch(), server_.body);
  EXPECT_EQ(asked(), 12U);
  server_.etag = "\"2\"";
  server_.ranges = false;
  server_.faults = {100, Fault::cut};  // each time the first half
  EXPECT_EQ(fetch().error().kind, ErrorKind::io);
  EXPECT_EQ(asked(), 6U);
}

TEST_F(ElsewhereTest, WhateverStateAFetchWasLeftInItEndsWithTheFileAsItIs) {
  // The file changes, or does not, while a fetch is broken off at any call of the system.
  for (const bool changes : {false, true})
    for (int nth = 0; nth < 60; ++nth) {
      server_.body = "0123456789";
      server_.etag = "\"1\"";
      ASSERT_TRUE(env_.remove_tree("/state/cache/urls"));
      int calls = 0;
      env_.fault = [&](std::string_view) -> std::optional<Error> {
        if (++calls <= nth) return std::nullopt;
        return Error{ErrorKind::io, "broken off"};
      };
      (void)fetch();
      env_.fault = nullptr;
      if (changes) {
        server_.body = "abcdefghijklm";
        server_.etag = "\"2\"";
      }
      EXPECT_EQ(*fetch(), server_.body) << nth;
    }
}

TEST_F(ElsewhereTest, AChecksumSparesAskingAndIsNotBelievedUnseen) {
  const std::string sum = to_hex(sha256("0123456789"));
  EXPECT_EQ(*fetch("https://host/file#sha256=" + sum), "0123456789");
  EXPECT_EQ(asked(), 1U);
  EXPECT_EQ(*fetch("https://mirror/file#sha256=" + sum), "0123456789");
  EXPECT_EQ(asked(), 0U);
  server_.body = "other";
  const auto wrong = fetch("https://host/file#sha256=" + std::string(64, '0'));
  EXPECT_EQ(wrong.error().kind, ErrorKind::invalid);
  EXPECT_TRUE(wrong.error().message.contains(to_hex(sha256("other"))));
}

TEST_F(ElsewhereTest, AStopAtOnceEndsTheWaiting) {
  server_.faults = {100, Fault::busy};
  env_.stops = 2;
  EXPECT_EQ(fetch().error().kind, ErrorKind::interrupted);
  EXPECT_EQ(asked(), 1U);
}

TEST_F(ElsewhereTest, ALookFetchesNothing) {
  const Url url = *parse_url("https://host/file");
  Elsewhere elsewhere(env_, cloud_);
  auto look = elsewhere.look(*store_, url);
  EXPECT_EQ(look->size, 10);
  EXPECT_FALSE(look->there);
  EXPECT_TRUE(fetch());
  EXPECT_TRUE(elsewhere.look(*store_, url)->there);
  server_.etag = "\"2\"";
  EXPECT_FALSE(elsewhere.look(*store_, url)->there);
}

TEST_F(ElsewhereTest, ACollectionKeepsWhatWasUsedSince) {
  EXPECT_TRUE(fetch());
  std::unordered_set<Digest> live;
  ASSERT_TRUE(keep_fetched(env_, "/state/cache", env_.wall() - std::chrono::hours(1), live));
  EXPECT_EQ(live, std::unordered_set<Digest>{sha256("0123456789")});
  live.clear();
  ASSERT_TRUE(keep_fetched(env_, "/state/cache", env_.wall() + std::chrono::hours(1), live));
  EXPECT_TRUE(live.empty());
}

}  // namespace
}  // namespace berth::remote
