#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "berth/base/rng.h"
#include "berth/base/units.h"
#include "berth/experiment/program.h"

namespace berth::experiment {
namespace {

Parameter choices(std::string name, std::vector<std::string> of) {
  return {.name = std::move(name), .choices = std::move(of)};
}

Parameter range(double min, double max, std::int64_t points = 0) {
  return {.name = "x", .choices = {}, .min = min, .max = max, .points = points};
}

Parameter log(Parameter parameter) {
  parameter.scale = Parameter::Scale::log;
  return parameter;
}

Parameter integer(Parameter parameter) {
  parameter.integer = true;
  return parameter;
}

/// The values of each trial, with commas.
std::vector<std::string> trials(std::vector<Parameter> params, Search search = {}) {
  Program program;
  program.params = std::move(params);
  program.search = search;
  const auto proposed = propose(program);
  EXPECT_TRUE(proposed) << proposed.error().message;
  EXPECT_EQ(count_trials(program), static_cast<std::int64_t>(proposed->size()));
  std::vector<std::string> lines;
  for (const auto& values : *proposed) {
    std::string line;
    for (const auto& [name, value] : values) line += (line.empty() ? "" : ",") + value;
    lines.push_back(line);
  }
  return lines;
}

Search random(std::int64_t samples, std::uint64_t seed = 1) {
  return {Search::Method::random, samples, seed};
}

std::vector<double> draws(const Parameter& parameter, std::int64_t samples) {
  std::vector<double> values;
  for (const auto& value : trials({parameter}, random(samples)))
    values.push_back(*parse_number(value));
  return values;
}

using Lines = std::vector<std::string>;

TEST(Propose, AGridTurnsItsLastParameterFastest) {
  EXPECT_EQ(trials({choices("a", {"x", "y"}), integer(range(-1, 1)), choices("c", {"p", "q"})}),
            (Lines{"x,-1,p", "x,-1,q", "x,0,p", "x,0,q", "x,1,p", "x,1,q", "y,-1,p", "y,-1,q",
                   "y,0,p", "y,0,q", "y,1,p", "y,1,q"}));
}

TEST(Propose, TheGridOfARangeHasBothItsEnds) {
  struct Case {
    Parameter parameter;
    Lines values;
  };
  const Case kCases[] = {{range(0, 1, 5), {"0", "0.25", "0.5", "0.75", "1"}},
                         {range(2, 9, 1), {"2"}},
                         {range(3, 3, 2), {"3", "3"}},
                         {log(range(1e-4, 1e-1, 4)), {"0.0001", "0.001", "0.01", "0.1"}},
                         {integer(range(1, 5)), {"1", "2", "3", "4", "5"}},
                         {integer(range(1, 5, 3)), {"1", "3", "5"}},
                         {integer(range(1, 3, 100)), {"1", "2", "3"}},
                         {log(integer(range(1, 1000, 4))), {"1", "10", "100", "1000"}},
                         {integer(range(9007199254740990, 9007199254740992)),
                          {"9007199254740990", "9007199254740991", "9007199254740992"}},
                         {range(-1e308, 1e308, 3), {"-1e+308", "0", "1e+308"}},
                         {range(1.23456789, 1.23456791, 2), {"1.23456789", "1.23456791"}},
                         {range(0.1, 0.1, 1), {"0.1"}}};
  for (const auto& [parameter, values] : kCases) EXPECT_EQ(trials({parameter}), values);
}

TEST(Propose, TheSameSeedGivesTheseTrialsForEver) {
  const std::vector<Parameter> params{log(range(1e-4, 1e-1)), choices("w", {"16", "32", "64"}),
                                      integer(range(1, 5))};
  // By a second implementation in Python.
  const Lines golden{"0.0126395,64,4", "0.0877593,64,2", "0.000152144,32,4", "0.000285396,64,2"};
  EXPECT_EQ(trials(params, random(4, 7)), golden);
  auto more = trials(params, random(400, 7));
  more.resize(4);
  EXPECT_EQ(more, golden) << "more samples go on where fewer ended";
  EXPECT_NE(trials(params, random(4, 8)), golden);
}

TEST(Propose, RandomDrawsFillTheirRangeEvenly) {
  const auto share_below = [](const std::vector<double>& values, double bound) {
    const auto below = std::ranges::count_if(values, [&](double v) { return v < bound; });
    return static_cast<double>(below) / static_cast<double>(values.size());
  };
  constexpr std::int64_t kSamples = 20'000;
  const auto linear = draws(range(-2, 6), kSamples);
  EXPECT_NEAR(share_below(linear, 0), 0.25, 0.02);
  EXPECT_NEAR(share_below(linear, 4), 0.75, 0.02);
  const auto logarithmic = draws(log(range(1e-4, 1)), kSamples);
  for (const int decade : {1, 2, 3})
    EXPECT_NEAR(share_below(logarithmic, std::pow(10, decade - 4)), decade / 4.0, 0.02) << decade;
  for (const auto& parameter : {integer(range(-1, 1)), log(integer(range(1, 3)))}) {
    std::map<double, int> counts;
    for (const double value : draws(parameter, kSamples)) ++counts[value];
    EXPECT_EQ(counts.size(), 3U) << "both ends are in";
  }
  std::map<double, int> dice;
  for (const double value : draws(integer(range(1, 6)), kSamples)) ++dice[value];
  for (const auto& [side, count] : dice) EXPECT_NEAR(count, kSamples / 6, 200) << side;
  std::map<std::string, int> words;
  for (const auto& word : trials({choices("a", {"x", "y"})}, random(kSamples))) ++words[word];
  EXPECT_NEAR(words["x"], kSamples / 2, 300);
}

TEST(Propose, NoValueLeavesItsRange) {
  Rng rng(1);
  for (int round = 0; round < 2000; ++round) {
    const double first = std::ldexp(rng.uniform() - 0.5, static_cast<int>(rng.below(200)) - 100);
    const double width = std::ldexp(rng.uniform(), static_cast<int>(rng.below(200)) - 150);
    Parameter parameter = range(first, first + width, 3);
    if (first > 0 && rng.below(2) == 0) parameter = log(parameter);
    for (const auto& search : {Search{}, random(5, rng.next())})
      for (const auto& text : trials({parameter}, search)) {
        const auto value = parse_number(text);
        ASSERT_TRUE(value && parameter.min <= *value && *value <= parameter.max)
            << text << " of " << parameter.min << " to " << parameter.max;
      }
  }
}

TEST(Propose, ParametersWithoutTrialsAndTrialsWithoutParameters) {
  EXPECT_EQ(trials({}).size(), 1U);
  EXPECT_EQ(trials({}, random(3)).size(), 3U) << "the same command, three times";
}

TEST(Propose, AMillionTrialsAreTheMost) {
  Program program;
  program.params = {integer(range(1, 1'000'000))};
  EXPECT_EQ(count_trials(program), kMostTrials);
  program.params = {integer(range(0, 1'000'000))};
  EXPECT_EQ(count_trials(program).error().message, "the grid has more than 1000000 trials");
  program.search = random(kMostTrials + 1);
  EXPECT_EQ(count_trials(program).error().message, "these are more than 1000000 trials");
}

}  // namespace
}  // namespace berth::experiment
