#include "berth/api/http_message.h"

#include <gtest/gtest.h>

namespace berth::api {
namespace {

/// The status with which a head is refused; 0: it is read.
int status_of(const std::string& fields, const std::string& line = "GET /v1/health HTTP/1.1",
              const std::string& host = "Host: a\r\n") {
  const std::string text = line + "\r\n" + host + fields + "\r\n";
  EXPECT_EQ(head_length(text + "GET /next"), text.size()) << text;
  const auto head = read_head(text);
  return head ? 0 : head.error().status;
}

TEST(HttpMessage, ReadsMethodTargetFieldsAndLength) {
  const auto head = read_head(
      "POST /v1/plan?a=b HTTP/1.1\r\nHost:a\r\nX-Empty:\r\nContent-Length: \t12 \r\n"
      "Expect: 100-continue\r\n\r\n");
  ASSERT_TRUE(head) << head.error().why;
  EXPECT_EQ(head->method, "POST");
  EXPECT_EQ(head->target, "/v1/plan?a=b");
  EXPECT_EQ(head->fields.at(0), std::pair(std::string("Host"), std::string("a")));
  EXPECT_EQ(head->fields.at(1).second, "");
  EXPECT_EQ(head->content_length, 12);
  EXPECT_TRUE(head->expects_continue);
  EXPECT_TRUE(head->keeps_connection);
}

TEST(HttpMessage, OneLengthOfABodyIsAllowed) {
  EXPECT_EQ(status_of("Content-Length: 5\r\n"), 0);
  EXPECT_EQ(status_of("Transfer-Encoding: Chunked\r\n"), 0);
  EXPECT_EQ(status_of("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(status_of("Transfer-Encoding: chunked\r\ncontent-length: 5\r\n"), 400);
  EXPECT_EQ(status_of("Content-Length: 5\r\nContent-Length: 5\r\n"), 400);
  EXPECT_EQ(status_of("Content-Length: 5\r\nContent-Length: 6\r\n"), 400);
  EXPECT_EQ(status_of("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 501);
  for (const char* length : {"", "-1", "+5", "5, 5", "0x5", "5 5", "5.0", "99999999999999999999"})
    EXPECT_EQ(status_of(std::string("Content-Length: ") + length + "\r\n"), 400) << length;
  for (const char* coding : {"gzip", "gzip, chunked", "chunked, gzip", "xchunked", "\"chunked\""})
    EXPECT_EQ(status_of(std::string("Transfer-Encoding: ") + coding + "\r\n"), 501) << coding;
  EXPECT_EQ(status_of("Transfer-Encoding: chunked\r\n", "GET / HTTP/1.0"), 400);
}

TEST(HttpMessage, FieldsThatAProxyMayReadDifferentlyAreRefused) {
  EXPECT_EQ(status_of("Content-Length : 5\r\n"), 400);
  EXPECT_EQ(status_of(" Content-Length: 5\r\n"), 400);
  EXPECT_EQ(status_of("X: a\r\n\tContent-Length: 5\r\n"), 400);
  EXPECT_EQ(status_of("X: a\rContent-Length: 5\r\n"), 400);
  EXPECT_EQ(status_of("X: a\nContent-Length: 5\r\n"), 400);
  EXPECT_EQ(status_of(std::string("X: a\0b\r\n", 8)), 400);
  EXPECT_EQ(status_of("X\r\n"), 400);
  EXPECT_EQ(status_of(": a\r\n"), 400);
  EXPECT_EQ(status_of("", "GET / HTTP/1.1", ""), 400);
  EXPECT_EQ(status_of("Host: b\r\n"), 400);
  EXPECT_EQ(status_of("", "GET / HTTP/1.0", ""), 0);
  EXPECT_FALSE(read_head("GET / HTTP/1.1\nHost: a\n\n"));
}

TEST(HttpMessage, WrongRequestLinesAreRefused) {
  for (const char* line : {"GET /", "GET  / HTTP/1.1", "GET / HTTP/1.1 ", " GET / HTTP/1.1",
                           "GET /\t HTTP/1.1", "G(T / HTTP/1.1", "GET / HTTP", "GET / http/1.1"})
    EXPECT_EQ(status_of("", line), 400) << line;
  EXPECT_EQ(status_of("", "GET / HTTP/2.0"), 505);
  EXPECT_EQ(status_of("", "GET /" + std::string(kLongestTarget, 'a') + " HTTP/1.1"), 414);
  std::string fields;
  for (std::size_t i = 0; i < kMostFields; ++i) fields += "X: a\r\n";
  EXPECT_EQ(status_of(fields), 431);
}

TEST(HttpMessage, ConnectionsEndAsTheClientAsks) {
  const auto keeps = [](const std::string& line, const std::string& fields) {
    return read_head(line + "\r\nHost: a\r\n" + fields + "\r\n").value().keeps_connection;
  };
  EXPECT_TRUE(keeps("GET / HTTP/1.1", ""));
  EXPECT_FALSE(keeps("GET / HTTP/1.1", "Connection: upgrade, Close\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.0", ""));
  EXPECT_TRUE(keeps("GET / HTTP/1.0", "Connection: Keep-Alive\r\n"));
}

TEST(HttpMessage, AHeadThatArrivesByteByByteIsFound) {
  const std::string text = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  for (std::size_t size = 1; size < text.size(); ++size)
    EXPECT_EQ(head_length(text.substr(0, size), size - 1), 0) << size;
  EXPECT_EQ(head_length(text, text.size() - 1), text.size());
}

/// The body that a text decodes to, in parts of `part` bytes, and what follows it; the refusal's
/// status, if it is refused; "more" where more has to come.
std::string decoded_chunks(std::string_view text, std::size_t part, std::size_t most = 100) {
  ChunkDecoder decoder(most);
  std::string body;
  while (!text.empty() && !decoder.is_done()) {
    const auto taken = decoder.decode(text.substr(0, part), body);
    if (!taken) return std::to_string(taken.error().status);
    text.remove_prefix(*taken);
  }
  return decoder.is_done() ? body + "|" + std::string(text) : "more";
}

TEST(ChunkDecoder, EndsWhereTheBodyEnds) {
  for (const std::size_t part : {1U, 2U, 7U, 1000U}) {
    EXPECT_EQ(decoded_chunks("3\r\nabc\r\n0A;x=\"y\"\r\n0123456789\r\n000\r\n\r\nGET /", part),
              "abc0123456789|GET /");
    EXPECT_EQ(decoded_chunks("0\r\nX: a\r\nY: b\r\n\r\nGET /", part), "|GET /");
    EXPECT_EQ(decoded_chunks("3\r\nabc\r\n0\r\n", part), "more");
    EXPECT_EQ(decoded_chunks("3\r\nab", part), "more");
  }
}

TEST(ChunkDecoder, WrongSyntaxIsRefused) {
  for (const std::size_t part : {1U, 2U, 7U, 1000U}) {
    for (const char* text : {"3\nabc\n0\n\n", "3\r\nabcd\r\n0\r\n\r\n", "3 \r\nabc\r\n0\r\n\r\n",
                             "0x3\r\nabc\r\n0\r\n\r\n", "-3\r\nabc\r\n0\r\n\r\n", "\r\n", "g\r\n",
                             ";x\r\n", "3\r\nabc0\r\n\r\n", "3\rabc", "0\r\nGET / HTTP/1.1\r\n\r\n",
                             "0\r\n X: a\r\n\r\n", "1;a\nb\r\n"})
      EXPECT_EQ(decoded_chunks(text, part), "400") << text;
    EXPECT_EQ(decoded_chunks("ffffffffffffffff0\r\n", part), "400");
  }
}

TEST(ChunkDecoder, LimitsHold) {
  EXPECT_EQ(decoded_chunks("4\r\nabcd\r\n0\r\n\r\n", 10, 4), "abcd|");
  EXPECT_EQ(decoded_chunks("5\r\nabcde\r\n0\r\n\r\n", 10, 4), "413");
  EXPECT_EQ(decoded_chunks("2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n", 10, 4), "413");
  EXPECT_EQ(decoded_chunks("ffffffffffffffff\r\n", 10, 4), "413");
  EXPECT_EQ(decoded_chunks("1;" + std::string(5000, 'a') + "\r\n", 100), "413");
  std::string extended, trailers = "0\r\n";
  for (int i = 0; i < 20; ++i) {
    extended += "1;" + std::string(1000, 'a') + "\r\nb\r\n";
    trailers += "X: " + std::string(1000, 'a') + "\r\n";
  }
  EXPECT_EQ(decoded_chunks(extended, 100), "413");
  EXPECT_EQ(decoded_chunks(trailers, 100), "413");
}

}  // namespace
}  // namespace berth::api
