#include "berth/base/json_place.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

JsonPlace place(std::string_view text) {
  auto parsed = JsonPlace::parse(text);
  EXPECT_TRUE(parsed) << text;
  return *std::move(parsed);
}

TEST(JsonPlace, FindsWhatIsThere) {
  const auto root = place(R"({"a": {"b": [1, 2.5], "n": null}, "t": "x"})");
  EXPECT_EQ(*root.get("a.b")->numbers(2), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(*root.get("a.b")->items(2)->at(1).number(), 2.5);
  EXPECT_EQ(*root.get("t")->text(), "x");
  EXPECT_FALSE(root.find("a.n"));
  EXPECT_FALSE(root.find("t.a"));
  EXPECT_FALSE(root.find("none"));
  EXPECT_EQ(*root.number_or("none", 7), 7);
}

TEST(JsonPlace, NamesThePlaceOfWhatIsWrong) {
  const auto root = place(R"({"a": {"b": [1, "x"], "c": {}}})");
  EXPECT_EQ(root.number("a.d").error().message, "there is no 'a.d'");
  EXPECT_EQ(root.get("a")->number("d").error().message, "a: there is no 'd'");
  EXPECT_EQ(root.get("a.b")->numbers(9).error().message, "a.b[1]: expected a number, got \"x\"");
  EXPECT_EQ(root.get("a.b")->numbers(1).error().message, "a.b: expected at most 1 elements, got 2");
  EXPECT_EQ(root.get("a.b")->items(1).error().message, "a.b: expected at most 1 elements, got 2");
  EXPECT_EQ(root.number_or("a.c", 1).error().message, "a.c: expected a number, got a map");
  EXPECT_EQ(root.get("a.b")->items(2)->at(1).error("no").error().message, "a.b[1]: no");
  EXPECT_EQ(root.items(1).error().message, "expected a list, got a map");
  EXPECT_EQ(root.error("no").error().kind, ErrorKind::invalid);
}

}  // namespace
}  // namespace berth
