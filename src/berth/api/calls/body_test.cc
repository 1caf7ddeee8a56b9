#include "berth/api/calls/body.h"

#include <gtest/gtest.h>

namespace berth::api {
namespace {

struct Values {
  std::string name = "before";
  bool is_dry = false;
  std::optional<Duration> age = {};
  std::vector<std::string> hosts = {};
};

Result<Field> read(std::string_view json, Values& values) {
  return read_body(json, {{"name", &values.name},
                          {"dry", &values.is_dry},
                          {"age", &values.age},
                          {"hosts", &values.hosts},
                          {"scope"}});
}

std::string refusal(std::string_view json) {
  Values values;
  const auto body = read(json, values);
  if (body) return "accepted";
  EXPECT_EQ(body.error().kind, ErrorKind::invalid);
  return body.error().message;
}

TEST(Bodies, ValuesOfAllTypesAreRead) {
  Values values;
  const auto body = read(
      R"({"name": "lab", "dry": true, "age": "7d", "hosts": ["a", "b"], "scope": "x"})", values);
  ASSERT_TRUE(body) << body.error().message;
  EXPECT_EQ(values.name, "lab");
  EXPECT_TRUE(values.is_dry);
  EXPECT_EQ(values.age, std::chrono::hours(24 * 7));
  EXPECT_EQ(values.hosts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(body->get("scope")->text(), "x");
}

TEST(Bodies, AbsentKeysLeaveVariablesUnchanged) {
  for (const auto* json : {"", "{}", R"({"name": null})"}) {
    Values values;
    EXPECT_TRUE(read(json, values)) << json;
    EXPECT_EQ(values.name, "before") << json;
  }
}

TEST(Bodies, ErrorsNameTheKey) {
  EXPECT_NE(refusal(R"({"nam": "lab"})").find("did you mean 'name'?"), std::string::npos);
  EXPECT_NE(refusal(R"({"name": ["lab"]})").find("name: expected text"), std::string::npos);
  EXPECT_NE(refusal(R"({"dry": 1})").find("dry: expected true or false"), std::string::npos);
  EXPECT_NE(refusal(R"({"age": 7})").find("age: "), std::string::npos);
  EXPECT_NE(refusal(R"({"hosts": "a"})").find("hosts: expected a list"), std::string::npos);
  EXPECT_NE(refusal("[1]").find("expected a map"), std::string::npos);
  EXPECT_NE(refusal("{"), "accepted");
  std::string name;
  const auto body = read_body("{}", {{"name", &name, true}});
  ASSERT_FALSE(body);
  EXPECT_NE(body.error().message.find("'name' is missing"), std::string::npos);
}

TEST(Bodies, AWrongNameOfAnEnumerationListsTheRightOnes) {
  enum class Scope : std::uint8_t { failed, all };
  static constexpr auto kNames = names<Scope>({{Scope::failed, "failed"}, {Scope::all, "all"}});
  auto scope = Scope::failed;
  const auto good = read_body(R"({"scope": "all"})", {{"scope"}});
  ASSERT_TRUE(good && read_choice(*good, "scope", kNames, scope));
  EXPECT_EQ(scope, Scope::all);
  const auto bad = read_body(R"({"scope": "some"})", {{"scope"}});
  ASSERT_TRUE(bad);
  const auto refused = read_choice(*bad, "scope", kNames, scope);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("expected one of failed, all"), std::string::npos);
}

}  // namespace
}  // namespace berth::api
