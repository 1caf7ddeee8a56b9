#include "berth/api/calls/body.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

enum class Scope : std::uint8_t { failed, all };
constexpr auto kScopes = names<Scope>({{Scope::failed, "failed"}, {Scope::all, "all"}});

constexpr std::string_view kKinds[] = {"one", "other"};

struct Body {
  std::string name = "before";
  bool is_dry = false;
  int count = 0;
  std::optional<std::string> server = {};
  std::vector<std::string> hosts = {};
  std::string kind = {};
  Scope scope = Scope::failed;
};
struct Required {
  std::string where;
};

}  // namespace

template <>
inline constexpr const auto& kNamesOf<Scope> = kScopes;
template <>
inline constexpr auto kRecordOf<Body> = Record{"Body",
                                               "A body.",
                                               optional_key("name", &Body::name),
                                               optional_key("dry", &Body::is_dry),
                                               optional_key("count", &Body::count),
                                               optional_key("server", &Body::server),
                                               optional_key("hosts", &Body::hosts),
                                               optional_key("kind", &Body::kind, kKinds),
                                               optional_key("scope", &Body::scope, "What to do.")};
template <>
inline constexpr auto kRecordOf<Required> =
    Record{"Required", "A key.", key("where", &Required::where)};

namespace api {
namespace {

std::string body_refusal(std::string_view json) {
  Body body;
  const auto status = read_body(json, body);
  if (status) return "accepted";
  EXPECT_EQ(status.error().kind, ErrorKind::invalid);
  return status.error().message;
}

TEST(Bodies, ValuesOfAllTypesAreRead) {
  Body body;
  const auto status = read_body(R"({"name": "lab", "dry": true, "count": 3, "server": "s",
                                    "hosts": ["a", "b"], "scope": "all"})",
                                body);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(body.name, "lab");
  EXPECT_TRUE(body.is_dry);
  EXPECT_EQ(body.count, 3);
  EXPECT_EQ(body.server, "s");
  EXPECT_EQ(body.hosts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(body.scope, Scope::all);
}

TEST(Bodies, AbsentKeysLeaveMembersUnchanged) {
  for (const auto* json : {"", "{}", R"({"name": null})"}) {
    Body body;
    EXPECT_TRUE(read_body(json, body)) << json;
    EXPECT_EQ(body.name, "before") << json;
  }
}

TEST(Bodies, ErrorsNameTheKey) {
  const auto has = [](std::string_view json, std::string_view part) {
    EXPECT_NE(body_refusal(json).find(part), std::string::npos) << json << body_refusal(json);
  };
  has(R"({"nam": "lab"})", "did you mean 'name'?");
  has(R"({"name": ["lab"]})", "name: expected text");
  has(R"({"dry": 1})", "dry: expected true or false");
  has(R"({"count": 1e12})", "count: ");
  has(R"({"hosts": "a"})", "hosts: expected a list");
  has(R"({"scope": "some"})", "expected one of failed, all");
  has(R"({"kind": "some"})", "kind: expected one of one, other; got 'some'");
  has("[1]", "expected a map");
  EXPECT_NE(body_refusal("{"), "accepted");
  EXPECT_NE(read_age("older_than", "soon").error().message.find("older_than: "), std::string::npos);
}

TEST(Bodies, SeveralStructsShareABody) {
  Body body;
  Required required;
  ASSERT_TRUE(read_body(R"({"where": "here", "count": 1})", body, required));
  EXPECT_EQ(required.where, "here");
  EXPECT_EQ(body.count, 1);
  const auto missing = read_body(R"({"count": 1})", body, required);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("'where' is missing"), std::string::npos);
}

TEST(Bodies, HaveASchema) {
  JsonWriter json;
  json.object();
  add_schema<Required, Body>(json);
  EXPECT_EQ(json.end().take(),
            R"({"Required":{"type":"object","description":"A key.","required":["where"],)"
            R"("properties":{"where":{"type":"string"},"name":{"type":"string"},)"
            R"("dry":{"type":"boolean"},"count":{"type":"integer"},"server":{"type":"string"},)"
            R"("hosts":{"type":"array","items":{"type":"string"}},)"
            R"("kind":{"type":"string","enum":["one","other"]},)"
            R"("scope":{"type":"string","enum":["failed","all"],"description":"What to do."}}}})");
}

TEST(Bodies, AreWrittenAsJson) {
  EXPECT_EQ(json_line(Body{.hosts = {"a"}}),
            R"({"name":"before","dry":false,"count":0,"hosts":["a"],"kind":"","scope":"failed"})"
            "\n");
}

}  // namespace
}  // namespace api
}  // namespace berth
