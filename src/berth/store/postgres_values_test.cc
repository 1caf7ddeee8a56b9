#include "berth/store/postgres_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "berth/base/rng.h"
#include "berth/base/text.h"

namespace berth::store {
namespace {

TEST(PostgresValues, PlainTextStaysReadable) {
  for (const std::string text : {"", "count/0", "été 🙂", "a\\b\"c\n\t{},"})
    EXPECT_EQ(to_text(text), text);
}

TEST(PostgresValues, AnyBytesComeBackAndStayDifferent) {
  Rng chance(7);
  std::map<std::string, std::string> seen;
  for (int i = 0; i < 20'000; ++i) {
    constexpr std::string_view kBytes("a0\0\x1a\xc3\xa9\xff\xf0\x9f\x99\x82", 11);
    std::string bytes;
    for (auto left = chance.below(6); left > 0; --left)
      bytes += kBytes[chance.below(kBytes.size())];
    const std::string text = to_text(bytes);
    EXPECT_EQ(valid_utf8(text), text);
    EXPECT_EQ(text.find('\0'), std::string::npos);
    EXPECT_EQ(from_text(text), bytes);
    EXPECT_EQ(seen.try_emplace(text, bytes).first->second, bytes);
  }
}

TEST(PostgresValues, ForeignMarksDoNotHurt) {
  for (const std::string text : {"\x1a",
                                 "\x1a"
                                 "1",
                                 "\x1azz", "a\x1a"})
    from_text(text);
}

TEST(PostgresValues, NumbersComeBackExactly) {
  const double huge = std::numeric_limits<double>::max();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double number : {0.1, -0.0, 1e-310, huge, infinity, -infinity}) {
    double back = 7;
    EXPECT_TRUE(from_sql(*to_sql(number), back));
    EXPECT_EQ(back, number);
  }
  double back = 7;
  EXPECT_EQ(to_sql(-std::nan("")), "NaN");
  EXPECT_TRUE(from_sql("NaN", back));
  EXPECT_TRUE(std::isnan(back));
  std::int64_t whole = 0;
  EXPECT_FALSE(from_sql("12x", whole));
  EXPECT_FALSE(from_sql("", whole));
}

TEST(PostgresValues, ListsQuoteWhatTheyHold) {
  Lists lists;
  EXPECT_TRUE(lists.empty());
  lists.add(1, std::string("a\"b\\c"), std::optional<int>());
  lists.add(2, std::string(), std::optional<int>(5));
  EXPECT_EQ(lists.list(0), R"({"1","2"})");
  EXPECT_EQ(lists.list(1), R"({"a\"b\\c",""})");
  EXPECT_EQ(lists.list(2), R"({NULL,"5"})");
}

}  // namespace
}  // namespace berth::store
