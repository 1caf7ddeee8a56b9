#include "berth/base/json.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include <nlohmann/json.hpp>

#include "berth/base/rng.h"
#include "berth/base/text.h"

namespace berth {
namespace {

std::string nested(int depth) {
  const auto count = static_cast<std::size_t>(depth);
  return std::string(count, '[') + std::string(count, ']');
}

TEST(Json, IsOneLineInTheOrderOfItsKeys) {
  for (const std::string text :
       {R"({"z":1,"a":{"y":[1,2.5,-3],"b":null},"m":"two\nlines"})", "[]", "\"\"", "-0.5", "true",
        "9223372036854775807", "18446744073709551615", R"("\u0000\"\\")"}) {
    const auto json = parse_json(text);
    ASSERT_TRUE(json) << text;
    EXPECT_EQ(dump(*json), text);
  }
}

TEST(Json, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_EQ(dump(Json("a\xff"
                      "b\xc3")),
            "\"a\xef\xbf\xbd"
            "b\xef\xbf\xbd\"");
  EXPECT_EQ(dump(Json{{"\xfe", 1}}), "{\"\xef\xbf\xbd\":1}");
}

TEST(Json, ReadsBackWhatWasQuotedWithoutTheLibrary) {
  Rng rng(1);
  for (int round = 0; round < 10'000; ++round) {
    std::string text;
    for (std::uint64_t left = rng.below(8); left > 0; --left)
      text += static_cast<char>(rng.below(4) == 0 ? rng.below(256) : rng.below(0x60));
    EXPECT_EQ(parse_json(json_quote(text)), Json(valid_utf8(text)));
  }
}

TEST(Json, RefusesWhatIsNone) {
  for (const std::string text :
       {"", " ", "{", "{\"a\":1,}", "{'a':1}", "[1 2]", "NaN", "01", "\"\n\"", "\"\xff\"", "{}{}",
        "1e999", "// no\n1", "\"\\ud800\""}) {
    const auto json = parse_json(text);
    ASSERT_FALSE(json) << text;
    EXPECT_EQ(json.error().kind, ErrorKind::invalid);
    EXPECT_TRUE(json.error().message.starts_with("not JSON: ")) << json.error().message;
  }
  EXPECT_NE(parse_json("{\"a\": x}").error().message.find("column 7"), std::string::npos);
}

TEST(Json, AKeyThatIsGivenAgainHasItsLastValue) {
  EXPECT_EQ(dump(*parse_json(R"({"a":1,"b":2,"a":{"c":3},"b":[]})")), R"({"a":{"c":3},"b":[]})");
  std::string many = "{", expected = "{";
  for (int i = 0; i < 100; ++i) {
    many += fmt::format("\"k{}\":{},", i % 40, i);
    if (i < 40)
      expected += fmt::format("{}\"k{}\":{}", i > 0 ? "," : "", i, i < 20 ? i + 80 : i + 40);
  }
  many.back() = '}';
  EXPECT_EQ(dump(*parse_json(many)), expected + "}");
}

/// The seconds that it takes to read the text, the least of three.
double seconds_to_read(const std::string& text) {
  double least = HUGE_VAL;
  for (int i = 0; i < 3; ++i) {
    const auto began = std::chrono::steady_clock::now();
    EXPECT_TRUE(parse_json(text));
    least = std::min(
        least, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  return least;
}

TEST(Json, TakesTimeThatIsLinearInTheText) {
  const auto list = [](int count, const char* element) {
    std::string text = "[0";
    for (int i = 0; i < count; ++i) text += element;
    return text + "]";
  };
  const auto map = [](int count) {
    std::string text = R"({"":0)";
    for (int i = 0; i < count; ++i) text += fmt::format(R"(,"{}":{})", i, i);
    return text + "}";
  };
  constexpr int kFew = 1500, kMany = 40 * kFew;
  const auto is_linear = [](double few, double many) { return many < 8 * 40 * few + 0.1; };
  EXPECT_TRUE(is_linear(seconds_to_read(list(kFew, ",{}")), seconds_to_read(list(kMany, ",{}"))));
  EXPECT_TRUE(is_linear(seconds_to_read(list(kFew, R"(,{"a":[]})")),
                        seconds_to_read(list(kMany, R"(,{"a":[]})"))));
  EXPECT_TRUE(is_linear(seconds_to_read(map(kFew)), seconds_to_read(map(kMany))));
}

TEST(Json, AppendsWithoutLookingForTheKey) {
  Json map = Json::object();
  append(map, "b", 1) = 2;
  append(map, "a", Json::array());
  EXPECT_EQ(dump(map), R"({"b":2,"a":[]})");
}

TEST(Json, NestsAtMost64Deep) {
  EXPECT_TRUE(parse_json(nested(64)));
  for (const int depth : {65, 66, 1'000, 1'000'000}) {
    const auto json = parse_json(nested(depth));
    ASSERT_FALSE(json) << depth;
    EXPECT_EQ(json.error(), (Error{ErrorKind::invalid, "JSON nested more than 64 deep"}));
  }
  EXPECT_FALSE(parse_json(std::string(1'000'000, '[')));
}

}  // namespace
}  // namespace berth
