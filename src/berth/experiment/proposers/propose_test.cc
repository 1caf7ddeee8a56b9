#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "berth/base/rng.h"
#include "berth/base/units.h"
#include "berth/experiment/proposers/sobol.h"
#include "berth/experiment/proposers/space.h"

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

Parameter when(Parameter parameter, std::string name, std::vector<std::string> values) {
  parameter.when.push_back({std::move(name), std::move(values)});
  return parameter;
}

TEST(Propose, AParameterIsThereOnlyWhereItsConditionsHold) {
  const std::vector<Parameter> space{
      choices("net", {"flat", "deep"}), when(choices("drop", {"no", "yes"}), "net", {"deep"}),
      when(choices("rate", {"0.1", "0.5"}), "drop", {"yes"}), choices("lr", {"1", "2"})};
  EXPECT_EQ(trials(space), (Lines{"flat,1", "flat,2", "deep,no,1", "deep,no,2", "deep,yes,0.1,1",
                                  "deep,yes,0.1,2", "deep,yes,0.5,1", "deep,yes,0.5,2"}));
  const std::vector<Lines> drawn{trials(space, random(200)),
                                 trials(space, {Search::Method::sobol, 200, 1})};
  for (const auto& lines : drawn) {
    const std::set<std::string> different(lines.begin(), lines.end());
    EXPECT_EQ(different.size(), 8) << "all of them, and no others";
  }
}

TEST(Propose, AConditionalGridIsCountedByItsPoints) {
  std::vector<Parameter> space{choices("a", {"x", "y"})};
  for (int i = 0; i < 12; ++i) space.push_back(when(integer(range(0, 9)), "a", {"none"}));
  EXPECT_EQ(trials(space), (Lines{"x", "y"})) << "though all combinations were 2e12";
}

TEST(Propose, WholeNumbersOnALogScaleHaveTheirSharesAtTheEndsToo) {
  std::map<std::string, int> drawn;
  for (const auto& line : trials({log(integer(range(1, 4)))}, random(4000))) ++drawn[line];
  // From half a step before it to half a step behind: log 3 and log 9/7 of log 9.
  EXPECT_NEAR(drawn["1"], 2000, 150);
  EXPECT_NEAR(drawn["4"], 457, 100);
}

TEST(Propose, ARangeWithAStepHasItsStepsAlone) {
  Parameter tenths = range(0.1, 0.7);
  tenths.step = 0.2;
  EXPECT_EQ(trials({tenths}), (Lines{"0.1", "0.3", "0.5", "0.7"}));
  Parameter fives = integer(range(5, 20));
  fives.step = 5;
  EXPECT_EQ(trials({fives}), (Lines{"5", "10", "15", "20"}));
  for (const auto& parameter : {tenths, fives}) {
    const auto lines = trials({parameter}, random(200));
    EXPECT_EQ(std::set(lines.begin(), lines.end()).size(), 4);
    for (int i = 0; i <= 100; ++i) {
      const std::string value = value_at(parameter, i / 100.0);
      EXPECT_EQ(value_at(parameter, *part_of(parameter, value)), value);
    }
  }
}

TEST(Space, EveryValueLiesWithinItsShareOfTheLine) {
  const Parameter parameters[] = {choices("c", {"a", "b", "c"}), range(-3, 5),
                                  log(range(1e-4, 1e2)),         integer(range(-2, 9)),
                                  log(integer(range(1, 1000))),  range(4, 4)};
  for (const auto& parameter : parameters) {
    EXPECT_EQ(value_at(parameter, 0), value_at(parameter, 1e-9));
    for (int i = 0; i <= 1000; ++i) {
      const std::string value = value_at(parameter, i / 1000.0);
      const auto part = part_of(parameter, value);
      ASSERT_TRUE(part) << value;
      EXPECT_EQ(value_at(parameter, *part), value) << "there and back";
    }
  }
  EXPECT_EQ(value_at(choices("c", {"a", "b"}), 1), "b");
  EXPECT_FALSE(part_of(choices("c", {"a"}), "b"));
  EXPECT_FALSE(part_of(range(0, 1), "2"));
  EXPECT_FALSE(part_of(range(0, 1), "nan"));
}

TEST(Sobol, EachCoordinateFillsEveryIntervalOnce) {
  constexpr std::uint64_t kPoints = 1024;
  for (std::size_t dimension = 0; dimension < kSobolDimensions; ++dimension) {
    std::set<int> intervals;
    for (std::uint64_t index = 0; index < kPoints; ++index)
      intervals.insert(static_cast<int>(sobol(index, dimension, 7) * kPoints));
    EXPECT_EQ(intervals.size(), kPoints) << dimension;
  }
}

/// The star discrepancy is dear to compute; how unevenly the boxes of a grid are filled is not.
double unevenness(const std::function<double(std::uint64_t, std::size_t)>& point, std::size_t x,
                  std::size_t y) {
  constexpr int kSide = 16, kEach = 4;
  std::map<std::pair<int, int>, int> boxes;
  for (std::uint64_t i = 0; i < kSide * kSide * kEach; ++i)
    ++boxes[{static_cast<int>(point(i, x) * kSide), static_cast<int>(point(i, y) * kSide)}];
  double sum = 0;
  for (int a = 0; a < kSide; ++a)
    for (int b = 0; b < kSide; ++b) sum += std::pow(boxes[{a, b}] - kEach, 2);
  return sum / (kSide * kSide);
}

TEST(Sobol, PairsOfCoordinatesAreFilledMoreEvenlyThanByChance) {
  constexpr std::size_t kFirst = 12;
  const auto at = [](std::uint64_t index, std::size_t d) { return sobol(index, d, 3); };
  for (std::size_t x = 0; x < kFirst; ++x)
    for (std::size_t y = 0; y < x; ++y)
      EXPECT_LT(unevenness(at, x, y), 4) << x << ' ' << y << ": 4 is what chance gives";
}

TEST(Sobol, TheSeedShiftsIt) {
  EXPECT_NE(sobol(1, 0, 1), sobol(1, 0, 2));
  EXPECT_EQ(sobol(5, 3, 1), sobol(5, 3, 1));
  std::set<double> beyond;
  for (std::uint64_t i = 0; i < 100; ++i) beyond.insert(sobol(i, 40, 1));
  EXPECT_EQ(beyond.size(), 100) << "dimensions beyond the table are random";
}

}  // namespace
}  // namespace berth::experiment
