// What all searches that learn have in common, and what each is good for.
#include "berth/experiment/proposers/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "berth/base/units.h"
#include "berth/experiment/constraint.h"
#include "berth/experiment/proposers/automatic.h"
#include "berth/experiment/proposers/cma_es.h"
#include "berth/experiment/proposers/external.h"
#include "berth/experiment/proposers/space.h"

namespace berth::experiment {
namespace {

using Method = Search::Method;
constexpr Method kLearning[] = {Method::tpe, Method::cma_es, Method::gp, Method::automatic,
                                Method::nsga2};

/// A space by the lot: ranges of all kinds, choices, and what only some points have.
std::vector<Parameter> any_space(Rng& rng) {
  std::vector<Parameter> params;
  const auto count = 1 + rng.below(6);
  for (std::uint64_t i = 0; i < count; ++i) {
    Parameter parameter{.name = fmt::format("p{}", i), .choices = {}};
    const auto kind = rng.below(6);
    if (kind == 0) {
      parameter.choices = {"a", "b", "c"};
      parameter.choices.resize(1 + rng.below(3));
    } else {
      parameter.integer = kind < 3;
      parameter.scale = rng.below(2) == 0 ? Parameter::Scale::log : Parameter::Scale::linear;
      parameter.min = static_cast<double>(1 + rng.below(3));
      parameter.max = parameter.min + static_cast<double>(rng.below(50));
      if (kind == 5 && parameter.scale == Parameter::Scale::linear) parameter.step = 0.5;
    }
    if (!params.empty() && !params[0].choices.empty() && rng.below(2) == 0)
      parameter.when = {{params[0].name, {params[0].choices.back()}}};
    params.push_back(std::move(parameter));
  }
  return params;
}

double any_score(const Values& values) {
  double score = 0;
  for (const auto& [name, value] : values) {
    const auto number = parse_number(value);
    score -= number ? std::abs(*number - 3) : value == "a" ? 1 : 0;
  }
  return score;
}

Program program_of(Method method, std::vector<Parameter> params, std::int64_t samples,
                   std::uint64_t seed) {
  Program program;
  program.params = std::move(params);
  program.goal = Goal{.metric = "m"};
  program.search = {.method = method, .samples = samples, .seed = seed};
  return program;
}

std::optional<Values> next_of(const Program& program, const std::vector<TrialReport>& told) {
  const auto proposer = make_proposer(program);
  for (const auto& each : told) proposer->tell(each);
  const auto proposal = proposer->ask();
  return proposal ? std::optional(proposal->params) : std::nullopt;
}

TEST(Samplers, KeepToTheSpaceAndKnowNoOrder) {
  Rng rng(3);
  for (int round = 0; round < 3; ++round)
    for (const auto method : kLearning) {
      Program program = program_of(method, any_space(rng), 1000, rng.next());
      if (rng.below(2) == 0 && method != Method::cma_es)
        program.further_goals = {Goal{.metric = "n"}};
      const bool bounded = rng.below(2) == 0;
      const auto proposer = make_proposer(program);
      std::vector<TrialReport> told;
      std::vector<std::size_t> open;
      for (std::int64_t number = 1; number <= 24; ++number) {
        auto proposal = proposer->ask();
        if (!proposal) break;  // nothing is left to try
        ASSERT_TRUE(fits(program.params, proposal->params)) << values_json(proposal->params);
        told.push_back({.number = number, .trial = *std::move(proposal)});
        proposer->tell(told.back());
        open.push_back(told.size() - 1);
        if (open.size() < 5) continue;
        const auto at = open.begin() + static_cast<std::ptrdiff_t>(rng.below(open.size()));
        TrialReport& ended = told[*at];
        ended.state = rng.below(6) == 0 ? TrialReport::State::failed : TrialReport::State::done;
        if (ended.state == TrialReport::State::done) {
          ended.scores = {any_score(ended.trial.params)};
          if (!program.further_goals.empty()) ended.scores.push_back(rng.uniform());
          if (bounded) ended.excesses = {rng.uniform() - 0.5, rng.uniform() - 0.8};
        }
        proposer->tell(ended);
        open.erase(at);
        if (number % 12 != 0) continue;
        const auto uninterrupted = proposer->ask();
        std::optional<Values> expected;
        if (uninterrupted) expected = uninterrupted->params;
        EXPECT_EQ(next_of(program, told), expected) << "a resume";
        std::vector<TrialReport> shuffled = told;
        for (std::size_t i = shuffled.size(); i > 1; --i)
          std::swap(shuffled[i - 1], shuffled[rng.below(i)]);
        EXPECT_EQ(next_of(program, shuffled), expected) << "another order";
      }
    }
}

TEST(Samplers, TryEachPointOfASmallSpaceOnce) {
  const std::vector<Parameter> params{
      {.name = "kind", .choices = {"a", "b"}},
      {.name = "n", .choices = {}, .min = 1, .max = 6, .integer = true},
      {.name = "more", .choices = {"x", "y"}, .when = {{"kind", {"b"}}}}};
  for (const auto method : kLearning) {
    const auto proposer = make_proposer(program_of(method, params, 100, 1));
    std::set<Values> tried;
    for (std::int64_t number = 1; const auto proposal = proposer->ask(); ++number) {
      EXPECT_TRUE(tried.insert(proposal->params).second) << values_json(proposal->params);
      proposer->tell({number, *proposal, TrialReport::State::done, {any_score(proposal->params)}});
    }
    EXPECT_EQ(tried.size(), 6 + 12);
  }
}

TEST(Samplers, ASpaceThatBecomesKnownHasNoEnd) {
  for (const auto method : kLearning) {
    Program program = program_of(method, {}, 100, 1);
    std::vector<TrialReport> told;
    for (std::int64_t number = 1; number <= 30; ++number) {
      if (number == 10) program.params = {{.name = "kind", .choices = {"a", "b"}}};
      if (number == 20)
        program.params.push_back({.name = "x", .choices = {}, .min = 0, .max = 9, .step = 1});
      for (const auto& parameter : program.params)
        if (std::ranges::find(program.optional, parameter.name) == program.optional.end())
          program.optional.push_back(parameter.name);
      const auto values = next_of(program, told);
      ASSERT_TRUE(values) << number;
      EXPECT_TRUE(fits(program.params, *values)) << values_json(*values);
      told.push_back({number,
                      {fmt::format("{}", number), *values},
                      TrialReport::State::done,
                      {any_score(*values)}});
    }
  }
}

TEST(Samplers, ManySideBySideLoseLittle) {
  for (const int side_by_side : {1, 16}) {
    Program program = program_of(Method::automatic,
                                 {{.name = "x", .choices = {}, .min = 0, .max = 1},
                                  {.name = "y", .choices = {}, .min = 0, .max = 1}},
                                 64, 1);
    program.parallel = side_by_side;
    const auto proposer = make_proposer(program);
    double best = HUGE_VAL;
    std::vector<TrialReport> open;
    for (std::int64_t number = 1;;) {
      while (std::ssize(open) < side_by_side) {
        const auto proposal = proposer->ask();
        if (!proposal) break;
        open.push_back({.number = number++, .trial = *proposal});
        proposer->tell(open.back());
      }
      if (open.empty()) break;
      TrialReport& ended = open.front();
      const double x = *parse_number(*find_value(ended.trial.params, "x")) - 0.3;
      const double y = *parse_number(*find_value(ended.trial.params, "y")) - 0.6;
      best = std::min(best, x * x + y * y);
      ended.state = TrialReport::State::done;
      ended.scores = {-x * x - y * y};
      proposer->tell(ended);
      open.erase(open.begin());
    }
    EXPECT_LT(best, 1e-5) << side_by_side << " side by side";
  }
}

/// The nearest to (0.9, 0.9) with x + y below 1: (0.5, 0.5). Only a few points keep that at first.
TEST(Samplers, KeepConstraints) {
  const std::vector<Parameter> params{{.name = "x", .choices = {}, .min = 0, .max = 1},
                                      {.name = "y", .choices = {}, .min = 0, .max = 1}};
  for (const auto method : {Method::tpe, Method::cma_es, Method::gp, Method::nsga2}) {
    const std::int64_t samples = method == Method::gp ? 50 : 250;
    Program program = program_of(method, params, samples, 5);
    program.goal = Goal{.metric = "m", .maximize = false};
    program.constraints = {*read_constraint("sum <= 1"), *read_constraint("x >= 0.4")};
    const auto proposer = make_proposer(program);
    double best = HUGE_VAL;
    int near = 0;
    for (std::int64_t number = 1; const auto proposal = proposer->ask(); ++number) {
      const double x = *parse_number(*find_value(proposal->params, "x"));
      const double y = *parse_number(*find_value(proposal->params, "y"));
      const double m = (x - 0.9) * (x - 0.9) + (y - 0.9) * (y - 0.9);
      const Numbers metrics{{"m", m}, {"sum", x + y}, {"x", x}};
      proposer->tell(report_of(program, number, *proposal, TrialReport::State::done, metrics));
      if (broken(program.constraints, metrics).empty()) best = std::min(best, m);
      if (number > samples - 20 && x + y < 1.2 && x > 0.3) ++near;
    }
    const auto name = Search::kMethodNames.name(method);
    EXPECT_LT(best, 0.33) << name << ": 0.32 is the least";
    EXPECT_GE(near, 10) << name << ": of the last 20";
  }
}

/// Of the whole square only a corner of a ten-thousandth keeps the constraints.
TEST(Samplers, FindWhatKeepsConstraintsByWhatBreaksThemLess) {
  const std::vector<Parameter> params{{.name = "x", .choices = {}, .min = 0, .max = 1},
                                      {.name = "y", .choices = {}, .min = 0, .max = 1}};
  for (const auto method : {Method::tpe, Method::cma_es, Method::gp, Method::nsga2}) {
    Program program = program_of(method, params, method == Method::gp ? 50 : 250, 2);
    program.constraints = {*read_constraint("x > 0.99"), *read_constraint("y < 0.01")};
    const auto proposer = make_proposer(program);
    int feasible = 0;
    for (std::int64_t number = 1; const auto proposal = proposer->ask(); ++number) {
      const double x = *parse_number(*find_value(proposal->params, "x"));
      const double y = *parse_number(*find_value(proposal->params, "y"));
      const Numbers metrics{{"m", y - x}, {"x", x}, {"y", y}};  // the goal leads away
      proposer->tell(report_of(program, number, *proposal, TrialReport::State::done, metrics));
      feasible += broken(program.constraints, metrics).empty() ? 1 : 0;
    }
    EXPECT_GE(feasible, 3) << Search::kMethodNames.name(method);
  }
}

/// ZDT1 in five dimensions: the front is where all but the first are 0.
TEST(Samplers, ComeNearAFront) {
  std::vector<Parameter> params;
  for (int i = 0; i < 5; ++i)
    params.push_back({.name = fmt::format("x{}", i), .choices = {}, .min = 0, .max = 1});
  for (const auto method : {Method::tpe, Method::gp, Method::nsga2}) {
    const std::int64_t samples = method == Method::gp ? 50 : 300;
    Program program = program_of(method, params, samples, 1);
    program.further_goals = {Goal{.metric = "n"}};
    const auto proposer = make_proposer(program);
    std::vector<std::pair<double, double>> near;
    for (std::int64_t number = 1; const auto proposal = proposer->ask(); ++number) {
      double g = 1;
      std::vector<double> x;
      for (const auto& [name, value] : proposal->params) x.push_back(*parse_number(value));
      for (std::size_t i = 1; i < x.size(); ++i) g += 9 * x[i] / 4;
      const double other = g * (1 - std::sqrt(x[0] / g));
      proposer->tell({number, *proposal, TrialReport::State::done, {-x[0], -other}});
      if (g < 1.3) near.emplace_back(x[0], other);
    }
    const auto at = [&](double low, double high) {
      return std::ranges::count_if(
          near, [&](const auto& each) { return each.first >= low && each.first < high; });
    };
    const auto name = Search::kMethodNames.name(method);
    EXPECT_GT(at(0, 0.3), 0) << name << ": at one end of the front";
    EXPECT_GT(at(0.3, 0.7), 0) << name;
    EXPECT_GT(at(0.7, 1.01), 0) << name << ": at the other";
  }
}

/// The least of a bowl in four dimensions after 200 trials, 64 at once, the median of three seeds.
double least_of_sixty_four(Method method) {
  std::vector<double> found;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    std::vector<Parameter> params;
    for (int i = 0; i < 4; ++i)
      params.push_back({.name = fmt::format("x{}", i), .choices = {}, .min = 0, .max = 1});
    const auto proposer = make_proposer(program_of(method, params, 200, seed));
    std::vector<TrialReport> open;
    double best = HUGE_VAL;
    Rng rng(seed);
    for (std::int64_t number = 1;;) {
      while (open.size() < 64) {
        const auto proposal = proposer->ask();
        if (!proposal) break;
        open.push_back({.number = number++, .trial = *proposal});
        proposer->tell(open.back());
      }
      if (open.empty()) break;
      const auto at = open.begin() + static_cast<std::ptrdiff_t>(rng.below(open.size()));
      double value = 0;
      for (const auto& [name, text] : at->trial.params)
        value += std::pow(*parse_number(text) - 0.3, 2);
      best = std::min(best, value);
      at->state = TrialReport::State::done;
      at->scores = {-value};
      proposer->tell(*at);
      open.erase(at);
    }
    found.push_back(best);
  }
  std::ranges::sort(found);
  return found[1];
}

TEST(Samplers, SixtyFourSideBySideLoseLittle) {
  EXPECT_LT(least_of_sixty_four(Method::tpe), 0.005);
  EXPECT_LT(least_of_sixty_four(Method::cma_es), 0.001);
}

using Point = std::vector<double>;

/// The least value after so many trials in a box around 0, off its middle.
double least(Method method, std::size_t dimensions, std::int64_t trials, double (*of)(const Point&),
             bool integer = false) {
  std::vector<Parameter> params;
  for (std::size_t i = 0; i < dimensions; ++i)
    params.push_back({.name = fmt::format("x{}", i),
                      .choices = {},
                      .min = -40,
                      .max = 60,
                      .integer = integer && i == 0});
  const auto proposer = make_proposer(program_of(method, std::move(params), trials, 1));
  double best = HUGE_VAL;
  for (std::int64_t number = 1; const auto proposal = proposer->ask(); ++number) {
    Point point;
    for (const auto& [name, value] : proposal->params) point.push_back(*parse_number(value) - 7);
    const double value = of(point);
    best = std::min(best, value);
    proposer->tell({number, *proposal, TrialReport::State::done, {-value}});
  }
  return best;
}

double sphere(const Point& x) {
  double sum = 0;
  for (const double each : x) sum += each * each;
  return sum;
}

/// A valley a hundred times as long as it is wide, along the diagonal.
double valley(const Point& x) {
  double along = 0;
  for (const double each : x) along += each;
  along /= std::sqrt(static_cast<double>(x.size()));
  return along * along + 1e4 * (sphere(x) - along * along);
}

TEST(CmaEs, GoesDownASphereAndATurnedValley) {
  EXPECT_LT(least(Method::cma_es, 5, 600, sphere), 1e-3);
  EXPECT_LT(least(Method::cma_es, 4, 900, valley), 1e-3);
  EXPECT_LT(least(Method::cma_es, 3, 500, sphere, true), 1e-6) << "with a whole number";
}

TEST(Nsga2, DescendsWithOneGoalToo) {
  EXPECT_LT(least(Method::nsga2, 5, 1000, sphere), 10);
  EXPECT_LT(least(Method::nsga2, 3, 500, sphere, true), 10) << "with a whole number";
}

TEST(Gp, IsNearInAFewTrials) {
  EXPECT_LT(least(Method::gp, 3, 30, sphere), 1);
  EXPECT_LT(least(Method::gp, 3, 30, sphere, true), 1);
}

TEST(Automatic, GoesOnWhereTheFirstTrialsHaveLed) {
  std::vector<Parameter> params;
  for (int i = 0; i < 3; ++i)
    params.push_back({.name = fmt::format("x{}", i), .choices = {}, .min = 0, .max = 1});
  const auto proposer = make_proposer(program_of(Method::automatic, params, 220, 1));
  double best = HUGE_VAL;
  for (std::int64_t number = 1;; ++number) {
    // What its Gaussian process would propose takes longer.
    const auto proposal =
        number <= 150 ? Proposal{"", quasi_random(params, number, 1)} : proposer->ask();
    if (!proposal) break;
    double value = 0;
    for (const auto& [name, text] : proposal->params)
      value += std::pow(*parse_number(text) - 0.3, 2);
    best = std::min(best, value);
    proposer->tell({number, *proposal, TrialReport::State::done, {-value}});
  }
  EXPECT_LT(best, 1e-4);
}

TEST(CmaEs, BeginsWhereEarlierTrialsWereGood) {
  const std::vector<Parameter> params{{.name = "x", .choices = {}, .min = 0, .max = 1},
                                      {.name = "y", .choices = {}, .min = 0, .max = 1}};
  CmaEs search(params, 1);
  for (int i = 0; i < 20; ++i) {
    const double x = 0.8 + 0.002 * i, y = 0.2 - 0.002 * i;
    search.tell({-i,
                 {"", {{"x", fmt::format("{}", x)}, {"y", fmt::format("{}", y)}}},
                 TrialReport::State::done,
                 {-i * 0.1}});
  }
  for (int number = 1; number <= 5; ++number) {
    const auto values = search.propose(number);
    EXPECT_NEAR(*parse_number(*find_value(values, "x")), 0.8, 0.05);
    EXPECT_NEAR(*parse_number(*find_value(values, "y")), 0.2, 0.05);
  }
}

}  // namespace
}  // namespace berth::experiment
