#include "berth/base/csv.h"

#include <gtest/gtest.h>

#include <vector>

namespace berth {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(std::string_view text, char separator = ',') {
  CsvText csv(text, separator);
  csv.skip_byte_order_mark();
  Rows rows;
  while (!csv.at_end()) {
    auto& row = rows.emplace_back();
    do {
      row.push_back(csv.rest().starts_with('"') ? csv.take_quoted().value_or("not closed")
                                                : std::string(csv.take_plain()));
    } while (csv.next_cell());
  }
  return rows;
}

TEST(CsvText, HasRowsOfCells) {
  EXPECT_EQ(rows_of(""), Rows{});
  EXPECT_EQ(rows_of("a,b\n1,2\n"), (Rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(rows_of("a,b\n1,2"), (Rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(rows_of("a\tb,c\n", '\t'), (Rows{{"a", "b,c"}}));
  EXPECT_EQ(rows_of("a,,\n\nb"), (Rows{{"a", "", ""}, {""}, {"b"}}));
  EXPECT_EQ(rows_of("a\r\n"), (Rows{{"a\r"}}));
}

TEST(CsvText, AQuotedCellMayHaveSeparatorsQuotesAndLineFeeds) {
  EXPECT_EQ(rows_of("\"a,b\",\"c \"\"d\"\"\"\n\"e\nf\",g"),
            (Rows{{"a,b", "c \"d\""}, {"e\nf", "g"}}));
  EXPECT_EQ(rows_of("a,\"b\nc"), (Rows{{"a", "not closed"}}));
}

TEST(CsvText, SkipsAByteOrderMarkAtTheBeginning) {
  EXPECT_EQ(rows_of("\xEF\xBB\xBFname,x"), (Rows{{"name", "x"}}));
}

TEST(CsvText, CountsLinesAndColumns) {
  CsvText csv("a,\"b\nc\",d\ne");
  EXPECT_EQ(csv.take_plain(), "a");
  EXPECT_TRUE(csv.next_cell());
  EXPECT_EQ(csv.line(), 1U);
  EXPECT_EQ(csv.column(), 3U);
  EXPECT_EQ(csv.take_quoted(), "b\nc");
  EXPECT_EQ(csv.line(), 2U);
  EXPECT_TRUE(csv.next_cell());
  EXPECT_EQ(csv.take_plain(), "d");
  EXPECT_FALSE(csv.next_cell());
  EXPECT_EQ(csv.line(), 3U);
  EXPECT_EQ(csv.column(), 1U);
}

}  // namespace
}  // namespace berth
