#include <cmath>

#include "berth/experiment/constraint.h"

#include <gtest/gtest.h>

#include "berth/experiment/proposers/proposer.h"

namespace berth::experiment {
namespace {

TEST(Constraint, IsReadAndWrittenAsItsText) {
  for (const std::string text :
       {"latency <= 50", "memory < 8", "accuracy >= 0.9", "f1 > -1e+300"}) {
    const auto constraint = read_constraint(text);
    ASSERT_TRUE(constraint) << text;
    EXPECT_EQ(constraint_text(*constraint), text);
  }
  EXPECT_EQ(constraint_text(*read_constraint(" val loss<=.5 ")), "val loss <= 0.5");
}

TEST(Constraint, IsNothingElse) {
  for (const std::string text :
       {"", "latency", "latency <=", "<= 50", "latency == 50", "latency =< 5", "50 <= latency",
        "latency <= 50 ms", "latency <= nan", "latency < inf", "a < 5 < b", "latency <> 5"})
    EXPECT_FALSE(read_constraint(text)) << text;
}

TEST(Constraint, IsBrokenBeyondItsBound) {
  const auto beyond = [](const std::string& text, double value) {
    return excess(*read_constraint(text), {{"other", 1}, {"m", value}}).value();
  };
  EXPECT_EQ(beyond("m <= 50", 50), 0);
  EXPECT_GT(beyond("m < 50", 50), 0);
  EXPECT_EQ(beyond("m >= 50", 50), 0);
  EXPECT_GT(beyond("m > 50", 50), 0);
  EXPECT_DOUBLE_EQ(beyond("m <= 50", 75), 0.5) << "as a part of the bound";
  EXPECT_DOUBLE_EQ(beyond("m > -50", -75), 0.5);
  EXPECT_DOUBLE_EQ(beyond("m >= 0", -3), 3);
  EXPECT_LT(beyond("m < 50", 49), 0);
  EXPECT_LT(beyond("m >= 50", 51), 0);
  EXPECT_FALSE(excess(*read_constraint("m < 1"), {{"n", 0}}));
}

TEST(Constraint, OnesThatAreBrokenAddUp) {
  const std::vector<Constraint> both{*read_constraint("a <= 1"), *read_constraint("b >= 10")};
  EXPECT_EQ(broken(both, {{"a", 1}, {"b", 10}}), std::vector<std::string>());
  EXPECT_EQ(broken(both, {{"a", 2}, {"b", 5}}), (std::vector<std::string>{"a <= 1", "b >= 10"}));
  EXPECT_EQ(broken(both, {{"a", 0}}), std::vector<std::string>{"b >= 10"}) << "not reported";
  EXPECT_DOUBLE_EQ(violation(both, {{"a", 2}, {"b", 5}}), 1.5);
  EXPECT_DOUBLE_EQ(violation(both, {{"a", -9}, {"b", 5}}), 0.5) << "one does not pay for another";
  EXPECT_EQ(violation(both, {{"a", 0}}), HUGE_VAL);
  const Goal goal{.metric = "a"};
  EXPECT_EQ(feasible_score(goal, both, {{"a", 1}, {"b", 11}}), 1);
  EXPECT_EQ(feasible_score(goal, both, {{"a", 2}, {"b", 11}}), std::nullopt);
}

TEST(Constraint, ReportsToProposersCarryWhatIsBroken) {
  Program program;
  program.goal = Goal{.metric = "loss", .maximize = false};
  program.constraints = {*read_constraint("a <= 1")};
  const auto of = [&](TrialReport::State state, const Numbers& metrics) {
    return report_of(program, 1, {"1", {}}, state, metrics);
  };
  const auto done = of(TrialReport::State::done, {{"loss", 3}, {"a", 2}});
  EXPECT_EQ(done.scores, std::vector<double>{-3});
  EXPECT_EQ(done.excesses, std::vector<double>{1});
  EXPECT_TRUE(of(TrialReport::State::open, {{"loss", 3}, {"a", 2}}).scores.empty());
  const auto missing = of(TrialReport::State::done, {{"loss", 3}});
  EXPECT_TRUE(missing.scores.empty()) << "as one without its goal";
  EXPECT_TRUE(missing.excesses.empty());
}

/// Of trials with ever greater scores, the even ones infeasible, halving goes on with odd ones.
TEST(Constraint, HalvingGoesOnWithWhatKeepsThem) {
  Program program;
  program.params = {{.name = "x", .choices = {}, .min = 0, .max = 1}};
  program.goal = Goal{.metric = "m"};
  program.constraints = {*read_constraint("a <= 0")};
  program.search = {.method = Search::Method::halving, .samples = 27, .seed = 1};
  program.search.budget = Budget{.parameter = "epochs", .min = 1, .max = 9, .reduction = 3};
  const auto proposer = make_proposer(program);
  int goes_on = 0;
  for (std::int64_t number = 1; const auto proposal = proposer->ask(); ++number) {
    const auto trial = std::stoll(proposal->label);
    if (!proposal->label.ends_with("@1")) {
      ++goes_on;
      EXPECT_EQ(trial % 2, 1) << proposal->label;
    }
    proposer->tell(report_of(program, number, *proposal, TrialReport::State::done,
                             {{"m", trial}, {"a", trial % 2 == 0 ? 1 : 0}}));
  }
  EXPECT_GT(goes_on, 5);
}

}  // namespace
}  // namespace berth::experiment
