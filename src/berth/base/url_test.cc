#include "berth/base/url.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

const std::string kSum(64, 'a');

TEST(Url, HasItsPartsAndItsFileName) {
  const Url url =
      *parse_url("https://Host:8080/dir/a%20b.gz?token=1#SHA256=" + std::string(64, 'A'));
  EXPECT_EQ(url.text, "https://Host:8080/dir/a%20b.gz?token=1");
  EXPECT_EQ(url.host, "Host:8080");
  EXPECT_EQ(url.path, "/dir/a%20b.gz?token=1");
  EXPECT_EQ(url.sha256, kSum);
  EXPECT_EQ(file_name(url), "a b.gz");
  EXPECT_EQ(shown(url.text), "https://Host:8080/dir/a%20b.gz?…");
  const Url s3 = *parse_url("s3://bucket/a b/ä?.txt");
  EXPECT_EQ(s3.host, "bucket");
  EXPECT_EQ(s3.path, "a b/ä?.txt");
  EXPECT_EQ(file_name(s3), "ä?.txt");
  EXPECT_EQ(percent_encoded(s3.path, "/"), "a%20b/%C3%A4%3F.txt");
}

TEST(Url, AFileNameLeadsNowhereElse) {
  for (const auto* text :
       {"https://host", "https://host/", "https://host/a/..", "http://host/?x=/y"})
    EXPECT_EQ(file_name(*parse_url(text)), "index") << text;
  EXPECT_EQ(file_name(*parse_url("https://host/..%2F..%2Fpasswd")), "..%2F..%2Fpasswd");
  EXPECT_EQ(file_name(*parse_url("https://host/a%00b")), "a%00b");
  EXPECT_EQ(file_name(*parse_url("https://host/100%")), "100%");
}

TEST(Url, WhatIsNoneIsRefused) {
  for (const auto& text :
       {"data/x", "ftp://host/x", "https://", "https:///x", "https://me@host/x", "https://ho st/x",
        "https://host/\nx", "https://host/x#", "https://host/x#sha256=ab", "https://host/x#md5=ab",
        "s3://bucket", "s3://bucket/", "s3://b/x", "s3://Bu|ket/x"})
    EXPECT_EQ(parse_url(text).error().kind, ErrorKind::invalid) << text;
  EXPECT_TRUE(is_foreign_url("ftp://host/x"));
  EXPECT_FALSE(is_foreign_url("https://host/x"));
  EXPECT_FALSE(is_foreign_url("a/b://c"));
}

TEST(Url, SecretsAreRemovedWhereverAUrlIsInAText) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"https://host/a?X-Amz-Signature=S&b=S#c", "https://host/a?…"},
      {"http://host?S", "http://host?…"},
      {"s3://bucket/key?versionId=S", "s3://bucket/key?…"},
      {"https://user:S@host:8080/a", "https://…@host:8080/a"},
      {"https://S@host/a?S", "https://…@host/a?…"},
      {"postgresql://user:S@host/db?password=S", "postgresql://…@host/db?…"},
      {"ssh://user@host/a", "ssh://user@host/a"},
      {"https://host/@scope/a@1#sha256=b", "https://host/@scope/a@1#sha256=b"},
      {"https://host/a?'S'\"S\"", "https://host/a?…"},
      {"curl 'https://host/a?S' -o b", "curl 'https://host/a?…' -o b"},
      {"curl https://host/a?b=1\\&c=S; ls", "curl https://host/a?… ls"},
      {"no step is called 'http://ho st?S S'; there are",
       "no step is called 'http://ho st?…'; there are"},
      {"a http://b?S http://c?S", "a http://b?… http://c?…"},
      {R"({"a":"http://b?S","c":"say \"http://b?S\""})",
       R"({"a":"http://b?…","c":"say \"http://b?…\""})"},
      {"--in=https://host/a?S", "--in=https://host/a?…"},
      {"http://host/a?b=S: not found", "http://host/a?…: not found"},
      {"http://host/a[1-3]?S", "http://host/a[1-3]?…"},
      {"expected db://HOST/NAME[?OPTION=VALUE]", "expected db://HOST/NAME[?OPTION=VALUE]"},
      {"is it? http://", "is it? http://"},
      {"", ""},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(without_secrets(text), expected);
  EXPECT_EQ(without_secrets("https://user:S@host/a?S", ""), "https://host/a");
  EXPECT_EQ(shown("https://user:S@host/a?S#sha256=b"), "https://…@host/a?…");
  EXPECT_EQ(shown("https://host/a#sha256=b"), "https://host/a");
}

}  // namespace
}  // namespace berth
