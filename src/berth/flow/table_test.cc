#include "berth/flow/table.h"

#include <gtest/gtest.h>

namespace berth::flow {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string complaint(std::string_view text, const std::string& file = "s.csv") {
  const auto table = read_table(text, file);
  return table ? "nothing" : table.error().message;
}

TEST(Table, ReadsWhatSpreadsheetsWrite) {
  const auto table =
      read_table("\xEF\xBB\xBFid,text\r\nA,\"a, \"\"b\"\"\nc\"\r\n\r\nB,\r\nC,x", "s.csv");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->columns, (std::vector<std::string>{"id", "text"}));
  EXPECT_EQ(table->rows, (Rows{{"A", "a, \"b\"\nc"}, {"B", ""}, {"C", "x"}}));
  const auto tabs = read_table("id\tq\nA\t\"x,\n", "s.tsv");
  ASSERT_TRUE(tabs);
  EXPECT_EQ(tabs->rows, (Rows{{"A", "\"x,"}}));
}

TEST(Table, SaysWhereItIsWrong) {
  EXPECT_EQ(complaint("a,b\n1,2\n\n1\n"), "s.csv:4: 1 fields, where the first line has 2: 1");
  EXPECT_EQ(complaint("a,b,a\n"), "s.csv:1: two columns are called 'a'");
  EXPECT_EQ(complaint("a,,b\n"), "s.csv:1: column 2 has no name");
  EXPECT_EQ(complaint("a\n\"x\ny"), "s.csv:2: a quote is not closed");
  EXPECT_EQ(complaint("a\n\"x\"y\n"), "s.csv:2: text follows a closed quote: y");
  EXPECT_EQ(complaint("\n\n"), "s.csv:2: the table is empty: its first line names the columns");
  EXPECT_EQ(complaint("a\n\xff\n"), "s.csv:2: field 1 is not UTF-8 text");
  EXPECT_EQ(complaint("a\n", "s.xls"), "s.xls: a table is a .csv or a .tsv file");
  EXPECT_EQ(complaint("a\n1\n"), "nothing");
}

}  // namespace
}  // namespace berth::flow
