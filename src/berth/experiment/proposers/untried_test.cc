#include "berth/experiment/proposers/untried.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "berth/base/units.h"
#include "berth/experiment/proposers/halving.h"

namespace berth::experiment {
namespace {

Parameter integers(std::string name, double max,
                   Parameter::Scale scale = Parameter::Scale::linear) {
  return {.name = std::move(name),
          .choices = {},
          .min = 1,
          .max = max,
          .scale = scale,
          .integer = true};
}

/// The number of different points among so many trials.
std::size_t different(Search::Method method, const std::vector<Parameter>& params,
                      std::int64_t samples) {
  Program program;
  program.params = params;
  program.goal = Goal{.metric = "m"};
  program.search = {.method = method, .samples = samples, .seed = 1};
  if (has_budget(method)) {
    program.search.budget = Budget{"epochs", 1, 1, 3};
    program.search.model = true;
  }
  const auto proposer = make_proposer(program);
  std::set<Values> points;
  for (std::int64_t number = 1; const auto proposal = proposer->ask(); ++number) {
    points.insert(proposal->params);
    double score = 0;
    for (const auto& [name, value] : proposal->params)
      if (const auto number_of = parse_number(value)) score -= std::abs(*number_of - 4);
    proposer->tell({number, *proposal, TrialReport::State::done, {score}});
  }
  return points.size();
}

void expect_no_repeats(const std::vector<Parameter>& params, std::int64_t samples) {
  for (const auto method :
       {Search::Method::gp, Search::Method::automatic, Search::Method::tpe, Search::Method::cma_es,
        Search::Method::nsga2, Search::Method::halving, Search::Method::hyperband})
    EXPECT_EQ(different(method, params, samples), static_cast<std::size_t>(samples))
        << Search::kMethodNames.name(method);
}

TEST(Untried, NoMethodRepeatsAPointOfThirtyThousand) {
  expect_no_repeats({integers("n", 300), integers("k", 100)}, 40);
}

TEST(Untried, NoMethodRepeatsAPointOfIntegersStepsAndChoices) {
  expect_no_repeats({integers("n", 1000, Parameter::Scale::log),
                     {.name = "rate", .choices = {}, .min = 0, .max = 10, .step = 0.5},
                     {.name = "net", .choices = {"a", "b", "c"}}},
                    40);
}

TEST(Untried, NoMethodRepeatsAPointOfASpaceWithConditions) {
  std::vector<Parameter> params{{.name = "net", .choices = {"a", "b"}}, integers("n", 8000)};
  params.push_back({.name = "m", .choices = {"1", "2", "3"}, .when = {{"net", {"b"}}}});
  expect_no_repeats(params, 40);
}

TEST(Untried, NoMethodRepeatsAPointBeforeASmallSpaceIsExhausted) {
  expect_no_repeats({integers("n", 6), {.name = "net", .choices = {"a", "b", "c", "d"}}}, 24);
}

TEST(Untried, TheNearestPointIsFoundUntilNoneIsLeft) {
  std::vector<Parameter> params{integers("n", 5), {.name = "net", .choices = {"a", "b"}}};
  params.push_back({.name = "m", .choices = {"1", "2"}, .when = {{"net", {"b"}}}});
  Program program;
  program.params = params;
  program.optional = {"m"};
  ASSERT_TRUE(has_end(program)) << "a condition, and not a trial, adds m";
  std::set<Parts> tried;
  std::set<Values> points;
  while (const auto next = nearest_untried(params, {{"n", "3"}, {"net", "a"}}, tried)) {
    EXPECT_TRUE(points.insert(*next).second);
    tried.insert(parts_of(params, *next));
    if (points.size() == 1) {
      EXPECT_EQ(*next, (Values{{"n", "3"}, {"net", "a"}}));
    } else if (points.size() == 2) {
      EXPECT_EQ(next->at(1).second, "a") << "a neighbour first";
    }
  }
  EXPECT_EQ(points.size(), 5U + 10U);
  program.optional = {"net", "m"};
  EXPECT_FALSE(has_end(program)) << "trials add parameters";
  program.optional.clear();
  program.params.push_back({.name = "x", .choices = {}, .min = 0, .max = 1});
  EXPECT_FALSE(has_end(program)) << "a range of floats";
}

}  // namespace
}  // namespace berth::experiment
