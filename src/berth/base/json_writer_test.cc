#include "berth/base/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace berth {
namespace {

using Style = JsonWriter::Style;

TEST(JsonWriter, WritesWhatItIsToldInThatOrder) {
  JsonWriter json;
  json.object().add("b", "x").add("a", -1).add("t", true).key("o").object().end();
  json.key("l").array().value(1).value("two").array().end().raw("{\"r\":1}").end().end();
  EXPECT_EQ(json.take(), R"({"b":"x","a":-1,"t":true,"o":{},"l":[1,"two",[],{"r":1}]})");
  EXPECT_EQ(json.array().end().take(), "[]");  // it begins anew
  EXPECT_EQ(json.object().add("a\"b é", 1).end().take(), "{\"a\\\"b é\":1}");
}

TEST(JsonWriter, PutsBlanksAndLinesWhereTheyAreAskedFor) {
  JsonWriter json(Style::spaced);
  json.object().line(2).add("a", 1).add("b", 2).line(2).key("c").array();
  json.line(4).value(1).line(4).list(std::vector<int>{2, 3}).line(2).end().line(0).end();
  EXPECT_EQ(json.take(), "{\n  \"a\": 1, \"b\": 2,\n  \"c\": [\n    1,\n    [2, 3]\n  ]\n}");
}

TEST(JsonWriter, NumbersAreExactAndNoneIsNull) {
  const auto written = [](auto number) { return JsonWriter().value(number).take(); };
  EXPECT_EQ(written(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(written(std::numeric_limits<std::int64_t>::max()), "9223372036854775807");
  EXPECT_EQ(written(-0.1), "-0.1");
  EXPECT_EQ(written(5e-324), "5e-324");
  EXPECT_EQ(written(std::nan("")), "null");
  EXPECT_EQ(written(-std::numeric_limits<double>::infinity()), "null");
}

TEST(JsonWriter, TextIsUtf8AndBytesAreCharactersOfTheirNumber) {
  EXPECT_EQ(JsonWriter().value("\"\\\n\x01 \xc3\xa9 \xff").take(),
            "\"\\\"\\\\\\u000a\\u0001 \xc3\xa9 ?\"");
  EXPECT_EQ(JsonWriter().bytes("\"\\\n\x01 \xc3\xff").take(),
            "\"\\\"\\\\\\n\\u0001 \xc3\x83\xc3\xbf\"");
}

}  // namespace
}  // namespace berth
