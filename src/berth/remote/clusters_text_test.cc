#include "berth/remote/clusters_text.h"

#include <gtest/gtest.h>

#include "berth/remote/clusters.h"

namespace berth::remote {
namespace {

/// Without the cluster `a`, by the reader's leave.
std::string without_a(std::string_view text) {
  const auto now = without_cluster(text, "a");
  return now ? *now : "error: " + now.error().message;
}

TEST(ClustersText, EntriesInBracesAreCutOut) {
  EXPECT_EQ(without_a("a: {kind: ssh, hosts: [x]}\nb: {kind: ssh, hosts: [y]}\n"),
            "b: {kind: ssh, hosts: [y]}\n");
  EXPECT_EQ(without_a("a: {\n  kind: ssh,\n  hosts: [x]\n}  # gone\n# b's\nb: {kind: ssh}\n"),
            "# b's\nb: {kind: ssh}\n");
  EXPECT_EQ(without_a("'a': {kind: ssh}\n\"b\" : {kind: ssh}\n"), "\"b\" : {kind: ssh}\n");
}

TEST(ClustersText, EntriesOfADocumentInBracesAreCutOut) {
  EXPECT_EQ(without_a("{a: {kind: ssh, hosts: [x, y]}, b: {kind: ssh}}\n"), "{b: {kind: ssh}}\n");
  EXPECT_EQ(without_a("{b: {kind: ssh}, a: {kind: ssh}}\n"), "{b: {kind: ssh}}\n");
  EXPECT_EQ(without_a("{a: {kind: ssh}}\n"), "{}\n");
  EXPECT_EQ(without_a("{a: {kind: ssh},}\n"), "{}\n");
  EXPECT_EQ(without_a("{\n  # a's\n  a: {kind: ssh},  # mine\n  # b's\n  b: {kind: ssh}\n}\n"),
            "{\n  # a's\n  # b's\n  b: {kind: ssh}\n}\n");
  EXPECT_EQ(without_a("{\n  \"b\": {\"kind\": \"ssh\"},\n  \"a\": {\"kind\": \"ssh\"}\n}\n"),
            "{\n  \"b\": {\"kind\": \"ssh\"}\n}\n");
}

TEST(ClustersText, WhatStandsInQuotesAndCommentsIsNoBrace) {
  EXPECT_EQ(without_a("{a: {kind: ssh, prescript: \"echo \\\"},\"}, # }, b\n"
                      " b: {kind: ssh, prescript: 'it''s {'}}\n"),
            "{ b: {kind: ssh, prescript: 'it''s {'}}\n");
  EXPECT_EQ(without_a("{b: {kind: ssh, env: {a: c}}, a: {kind: ssh, prescript: don't}}"),
            "{b: {kind: ssh, env: {a: c}}}");
}

TEST(ClustersText, LinesEndAsTheOthersDo) {
  EXPECT_EQ(*with_cluster("# mine\r\na: {kind: ssh}\r\n", "n", {"x"}),
            "# mine\r\na: {kind: ssh}\r\nn:\r\n  kind: ssh\r\n  hosts:\r\n    - \"x\"\r\n");
  EXPECT_EQ(without_a("a:\r\n  kind: ssh\r\nb: {kind: ssh}\r\n"), "b: {kind: ssh}\r\n");
  EXPECT_EQ(without_a("{\r\n  a: {kind: ssh},\r\n  b: {kind: ssh}\r\n}\r\n"),
            "{\r\n  b: {kind: ssh}\r\n}\r\n");
}

TEST(ClustersText, AFileThatSaysThatItHoldsNothingIsEmpty) {
  constexpr auto kNew = "n:\n  kind: ssh\n  hosts:\n    - \"x\"\n";
  EXPECT_EQ(*with_cluster("null", "n", {"x"}), kNew);
  EXPECT_EQ(*with_cluster("# mine\n~\n# and mine\n", "n", {"x"}),
            "# mine\n# and mine\n" + std::string(kNew));
  EXPECT_EQ(*with_cluster("--- NULL # none\n", "n", {"x"}), "---  # none\n" + std::string(kNew));
  EXPECT_EQ(*with_cluster("nullable: {kind: ssh}\n", "n", {"x"}),
            "nullable: {kind: ssh}\n" + std::string(kNew));
}

TEST(ClustersText, WhatIsAddedIsWrittenAsTheOthersAre) {
  EXPECT_EQ(*with_cluster("", "n", {"x y"}), "n:\n  kind: ssh\n  hosts:\n    - \"x y\"\n");
  EXPECT_EQ(*with_cluster("a: {kind: ssh}", "n", {"x"}),
            "a: {kind: ssh}\nn:\n  kind: ssh\n  hosts:\n    - \"x\"\n");
  constexpr auto kNew = R"("n": {"kind": "ssh", "hosts": ["x"]})";
  EXPECT_EQ(*with_cluster("{}", "n", {"x"}), "{" + std::string(kNew) + "}");
  EXPECT_EQ(*with_cluster("# mine\n---\n{a: {kind: ssh} # a\n}\n", "n", {"x"}),
            "# mine\n---\n{a: {kind: ssh}, " + std::string(kNew) + " # a\n}\n");
  EXPECT_EQ(*with_cluster("{a: {kind: ssh},}", "n", {"x"}),
            "{a: {kind: ssh}, " + std::string(kNew) + ",}");
}

}  // namespace
}  // namespace berth::remote
