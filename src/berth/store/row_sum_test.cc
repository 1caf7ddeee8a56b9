#include "berth/store/row_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace berth::store {
namespace {

TEST(RowSum, EveryChangedBitOfATextChangesIt) {
  const std::string text = R"({"lr":"0.125","model":"resnet50"})";
  const auto sum = sum_of(TaskNumber{3}, text).value;
  for (std::size_t at = 0; at < text.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = text;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      EXPECT_NE(sum_of(TaskNumber{3}, changed).value, sum) << changed;
    }
  EXPECT_NE(sum_of(TaskNumber{4}, text).value, sum);
}

TEST(RowSum, TextsThatAreDividedOtherwiseDiffer) {
  const std::string a = "a", b = "b", ab = "ab", none;
  EXPECT_NE(sum_of(a, b).value, sum_of(ab, none).value);
  EXPECT_NE(sum_of(std::string(8, '\0')).value, sum_of(std::string(9, '\0')).value);
}

TEST(RowSum, NumbersThatSQLiteDoesNotDistinguishAreEqual) {
  EXPECT_EQ(sum_of(0.0).value, sum_of(-0.0).value);
  EXPECT_EQ(sum_of(std::nan("1")).value, sum_of(-std::nan("2")).value);
  EXPECT_NE(sum_of(0.0).value, sum_of(std::nan("1")).value);
  EXPECT_NE(sum_of(1.0).value, sum_of(std::nextafter(1.0, 2.0)).value);
}

TEST(RowSum, StaysTheSameInLaterVersions) {
  EXPECT_EQ(sum_of(TaskNumber{7}, std::string("count"), 0.5, std::optional<int>()).value,
            391'346'809);
}

}  // namespace
}  // namespace berth::store
