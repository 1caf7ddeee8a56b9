#include "berth/experiment/own_point.h"

#include <gtest/gtest.h>

namespace berth::experiment {
namespace {

Program conditional() {
  Program program;
  program.params = {
      {.name = "net", .choices = {"flat", "deep"}},
      {.name = "lr", .choices = {}, .min = 0.25, .max = 1},
      {.name = "drop", .choices = {}, .min = 0, .max = 1, .when = {{"net", {"deep"}}}}};
  program.search = {.method = Search::Method::tpe, .samples = 10};
  return program;
}

TEST(OwnPoint, IsReadAsPeopleWriteIt) {
  const Values point{{"lr", "0.5"}, {"net", "deep"}};
  for (const auto* text : {"lr=0.5 net=deep", " lr=0.5  net=deep ", "{lr: 0.5, net: deep}",
                           R"({"lr": 0.5, "net": "deep"})"})
    EXPECT_EQ(read_own_point(text).value_or(Values{}), point) << text;
  EXPECT_EQ(read_own_point("a=b=c").value(), (Values{{"a", "b=c"}}));
  EXPECT_EQ(read_own_point("").value(), Values{}) << "all of it is proposed";
  for (const auto* text : {"lr", "=1", "lr=1 lr=2", "{lr", "l-r=1"})
    EXPECT_EQ(read_own_point(text).error().kind, ErrorKind::invalid) << text;
}

TEST(OwnPoint, LiesWithinTheSpace) {
  EXPECT_TRUE(check_own_point(conditional(), {{"lr", "0.5"}}, false));
  EXPECT_EQ(check_own_point(conditional(), {{"lr", "2"}}, false).error().message,
            "lr: '2' lies outside 0.25..1");
  EXPECT_EQ(check_own_point(conditional(), {{"net", "wide"}}, true).error().message,
            "net: 'wide' lies outside one of flat, deep");
  EXPECT_EQ(check_own_point(conditional(), {{"x", "2"}}, false).error().message,
            "x: the space has no such parameter");
  EXPECT_EQ(check_own_point(conditional(), {{"lr", "0.50"}}, false), (Values{{"lr", "0.5"}}));
  Program whole = conditional();
  whole.params[1] = {.name = "n", .choices = {}, .min = 1, .max = 9, .integer = true, .step = 2};
  EXPECT_EQ(check_own_point(whole, {{"n", "3.0"}}, false), (Values{{"n", "3"}}));
  EXPECT_EQ(check_own_point(whole, {{"n", "4"}}, false).error().message,
            "n: '4' lies between the values of 1..9 in steps of 2, int");
  EXPECT_TRUE(check_own_point(conditional(), {{"x", "2"}}, true));
  Program halving = conditional();
  halving.search.budget = Budget{"epochs", 1, 9};
  EXPECT_FALSE(check_own_point(halving, {{"lr", "0.5"}}, false));
}

TEST(OwnPoint, IsCompletedByWhatIsProposed) {
  Rng rng(1);
  const auto params = conditional().params;
  const Values proposed{{"net", "deep"}, {"lr", "0.75"}, {"drop", "0.5"}};
  EXPECT_EQ(completed(params, {{"lr", "0.5"}}, proposed, rng),
            (Values{{"net", "deep"}, {"lr", "0.5"}, {"drop", "0.5"}}));
  EXPECT_EQ(completed(params, {{"net", "flat"}}, proposed, rng),
            (Values{{"net", "flat"}, {"lr", "0.75"}}))
      << "without what it has no use for";
  const Values drawn = completed(params, {{"net", "deep"}}, {}, rng);
  ASSERT_EQ(drawn.size(), 3U);
  EXPECT_TRUE(check_own_point(conditional(), drawn, false));
}

}  // namespace
}  // namespace berth::experiment
