#include "berth/exec/labels.h"

#include <gtest/gtest.h>

namespace berth::exec {
namespace {

std::string said(std::string_view yaml) {
  Labels labels;
  const auto read = read_labels(*Field::parse(yaml, "f"), labels);
  return read ? to_text(labels) : read.error().message;
}

TEST(Labels, AreReadAndBounded) {
  EXPECT_EQ(said("labels: {team: vision, cost-centre: 7, note: 'a b'}"),
            "team=vision,cost-centre=7,note=a b");
  EXPECT_EQ(said("name: x"), "");
  EXPECT_EQ(said("labels: [a]"), "f:1: labels: expected names and values: labels: {team: vision}");
  EXPECT_EQ(said("labels: {run: x}"),
            "f:1: labels.run: 'run' is what Berth itself calls every run by");
  EXPECT_EQ(said("labels: {a b: x}").substr(0, 38), "f:1: labels.a b: 'a b': a label's name");
  EXPECT_EQ(said("labels: {a: \"x\\ny\"}"),
            "f:1: labels.a: a: a label's value is text of at most 200 bytes in one line");
  EXPECT_EQ(said("labels: {a: [1]}"), "f:1: labels.a: expected text, got a list");
  Labels labels;
  for (std::size_t i = 0; i < kMostLabels; ++i)
    ASSERT_TRUE(set_label("a" + std::to_string(i), "", labels));
  EXPECT_EQ(set_label("b", "", labels).error().message, "more than 16 labels");
  EXPECT_TRUE(set_label("a3", "again", labels)) << "one that there is may change";
}

TEST(Labels, TheCommandLineWinsAndFilters) {
  Labels labels{{"team", "vision"}, {"n", "1"}};
  EXPECT_TRUE(add_label("n=2=3", labels));
  EXPECT_EQ(to_text(labels), "team=vision,n=2=3");
  EXPECT_EQ(add_label("n", labels).error().message, "--label: expected NAME=VALUE, got 'n'");
  EXPECT_TRUE(add_label("n=1", labels));
  EXPECT_TRUE(fits_label("team", labels));
  EXPECT_TRUE(fits_label("team=vision", labels));
  EXPECT_FALSE(fits_label("team=", labels));
  EXPECT_FALSE(fits_label("visio", labels));
}

}  // namespace
}  // namespace berth::exec
