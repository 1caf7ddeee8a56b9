#include "berth/base/json_error.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "berth/base/json.h"
#include "berth/base/rng.h"

namespace berth {
namespace {

std::string message_for(std::string_view text) {
  const auto json = parse_json(text);
  return json ? "" : json.error().message;
}

TEST(JsonError, SaysWhereAndWhatIsExpected) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "it is empty"},
      {" \n", "it is empty"},
      {"{", "line 1, column 2: expected a name in double quotes, got the end of the text"},
      {"{\"a\": x}", "line 1, column 7: expected a value, got 'x'"},
      {"{\"a\" 1}", "line 1, column 6: expected ':', got '1'"},
      {"[1 2]", "line 1, column 4: expected ',' or ']', got '2'"},
      {"{\"a\": 1\n \"b\": 2}", "line 2, column 2: expected ',' or '}', got '\"b\"'"},
      {"[1,\n 2", "line 2, column 3: expected ',' or ']', got the end of the text"},
      {"[1,]", "line 1, column 4: expected a value, got ']' (remove the comma before ']')"},
      {"{\"a\": 1,\n}",
       "line 2, column 1: expected a name in double quotes, got '}' (remove the comma before "
       "'}')"},
      {"[0.5, NaN]", "line 1, column 7: expected a value, got 'NaN' (JSON has no NaN: write null)"},
      {"[-Infinity]", "line 1, column 2: a malformed number"},
      {"[Infinity]",
       "line 1, column 2: expected a value, got 'Infinity' (JSON has no infinity: write null or "
       "a "
       "text)"},
      {"{\"a\": True}", "line 1, column 7: expected a value, got 'True' (write true)"},
      {"{'a': 1}",
       "line 1, column 2: expected a name in double quotes, got ''' (JSON takes double quotes)"},
      {"// note\n{}", "line 1, column 1: expected a value, got '/' (JSON has no comments)"},
      {"{}{}", "line 1, column 3: expected the end of the text, got '{'"},
      {"\"abc", "line 1, column 5: a text without its closing quote"},
      {"\"a\nb\"", "line 1, column 3: a control character in a text; write \\n or \\t"},
      {"\"\xff\"", "line 1, column 2: bytes that are not UTF-8"},
      {"\"\\x41\"", "line 1, column 3: an unknown escape in a text; write \\\\ for a backslash"},
  };
  for (const auto& [text, message] : cases)
    EXPECT_EQ(message_for(text), "not JSON: " + std::string(message)) << text;
}

TEST(JsonError, AnswersYamlAsSuch) {
  for (const std::string_view text : {"name: x\n", "# a comment\nname: x\n", "---\nname: x\n",
                                      "- 1\n- 2\n", "servers:\n  - a\n", "a-b.c: {d: 1}\r\n"})
    EXPECT_NE(message_for(text).find("looks like YAML"), std::string::npos) << text;
  for (const std::string_view text : {"{a: 1}", "\"a\": 1", "http://x", "-1x", "note"})
    EXPECT_EQ(message_for(text).find("looks like YAML"), std::string::npos) << text;
}

TEST(JsonError, NeverShowsTextOfTheLibrary) {
  Rng rng(7);
  const std::string whole = R"({"a": [1, -2.5e3, true, null], "b": {"c": "d\né"}, "e": ""})";
  for (int round = 0; round < 5'000; ++round) {
    std::string text = whole.substr(0, 1 + rng.below(whole.size()));
    for (std::uint64_t left = rng.below(4); left > 0; --left)
      text[rng.below(text.size())] = static_cast<char>(rng.below(256));
    const std::string message = message_for(text);
    EXPECT_EQ(message.find("json.exception"), std::string::npos) << text;
    EXPECT_EQ(message.find("last read"), std::string::npos) << text;
    EXPECT_EQ(message.find("syntax error"), std::string::npos) << text;
  }
  EXPECT_EQ(message_for("1e999"), "not JSON: number overflow parsing '1e999'");
  EXPECT_EQ(without_library_tag("[json.exception.type_error.302] type must be string"),
            "type must be string");
  EXPECT_EQ(without_library_tag("no memory"), "no memory");
}

}  // namespace
}  // namespace berth
