#include "berth/experiment/proposers/transfer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "berth/base/rng.h"
#include "berth/base/units.h"
#include "berth/experiment/proposers/sampler.h"
#include "berth/experiment/proposers/space.h"

namespace berth::experiment {
namespace {

constexpr Search::Method kMethods[] = {Search::Method::tpe,       Search::Method::gp,
                                       Search::Method::cma_es,    Search::Method::nsga2,
                                       Search::Method::automatic, Search::Method::halving,
                                       Search::Method::hyperband};

Program searched(Search::Method method, std::int64_t samples, std::uint64_t seed) {
  Program program;
  program.params = {{.name = "x", .choices = {}, .min = 0, .max = 1},
                    {.name = "y", .choices = {}, .min = 0, .max = 1}};
  program.goal = Goal{.metric = "loss", .maximize = false};
  program.search = {.method = method, .samples = samples, .seed = seed};
  if (has_budget(method)) {
    program.search.budget = Budget{"epochs", 1, 9, 3};
    program.search.model = true;
  }
  return program;
}

double number_of(const Values& values, const char* name) {
  return *parse_number(*find_value(values, name));
}

double loss(const Values& values, double at) {
  return std::pow(number_of(values, "x") - at, 2) + std::pow(number_of(values, "y") - at, 2);
}

/// A run of random trials of a loss with its lowest value at (at, at).
void add_run(Program& program, const std::string& name, double at, double factor) {
  for (std::int64_t trial = 1; trial <= 40; ++trial) {
    Values point = quasi_random(program.params, trial, 99);
    const double found = factor * loss(point, at);
    if (const auto& budget = program.search.budget) point.emplace_back(budget->parameter, "9");
    program.earlier.push_back({point, {{"loss", found}}, name});
  }
}

struct Course {
  std::vector<TrialReport> trials;
  std::vector<Values> points;
  double best = HUGE_VAL;
  std::vector<std::string> notes;
};

/// Runs one trial after the other, with the lowest loss at (0.3, 0.3).
Course follow(const Program& program) {
  Course course;
  const auto proposer = make_proposer(program);
  for (std::int64_t number = 1; const auto proposal = proposer->ask(); ++number) {
    TrialReport report{.number = number, .trial = *proposal};
    proposer->tell(report);
    report.state = TrialReport::State::done;
    report.scores = {-loss(proposal->params, 0.3)};
    proposer->tell(report);
    course.best = std::min(course.best, -report.scores[0]);
    course.points.push_back(proposal->params);
    course.trials.push_back(report);
  }
  course.notes = proposer->take_notes();
  return course;
}

EarlierTrial best_of(const Program& program, const std::string& run) {
  const EarlierTrial* best = nullptr;
  for (const auto& trial : program.earlier)
    if (trial.run == run && (!best || trial.metrics[0].second < best->metrics[0].second))
      best = &trial;
  return *best;
}

TEST(Transfer, TheBestPointOfEachRunIsMeasuredFirst) {
  for (const auto method : kMethods) {
    Program program = searched(method, 10, 1);
    add_run(program, "a", 0.3, 10);
    add_run(program, "b", 0.8, 1);
    const auto points = follow(program).points;
    EXPECT_EQ(points.at(0), best_of(program, "a").params);
    EXPECT_EQ(points.at(1), best_of(program, "b").params);
  }
}

TEST(Transfer, ThreeDifferentGoodPointsAreMeasured) {
  Program program = searched(Search::Method::gp, 10, 1);
  const auto add = [&](const char* x, double found) {
    program.earlier.push_back({{{"x", x}, {"y", "0.5"}}, {{"loss", found}}, "a"});
  };
  for (const auto& [x, found] : {std::pair("0.9", 9.0), {"0.3", 1}, {"0.31", 2}, {"0.3", 1}})
    add(x, found);
  add("0.4", 3);
  add("0.5", 4);
  const auto x_of = [&] {
    std::vector<std::string> values;
    for (const auto& trial : good_trials(program)) values.push_back(*find_value(trial.params, "x"));
    return values;
  };
  EXPECT_EQ(x_of(), (std::vector<std::string>{"0.3", "0.4", "0.5"})) << "0.31 is near 0.3";
  program.earlier = good_trials(program);
  EXPECT_EQ(x_of(), (std::vector<std::string>{"0.3", "0.4", "0.5"})) << "the same of these";
  program.earlier.clear();
  add("0.3", 1);
  add("0.3", 1);
  add("0.31", 2);
  EXPECT_EQ(x_of(), (std::vector<std::string>{"0.3", "0.31"})) << "there are no others";
}

TEST(Transfer, AHigherBudgetCountsBeforeAHigherScore) {
  Program program = searched(Search::Method::halving, 10, 1);
  for (const auto& [x, epochs, found] : {std::tuple("0.1", "1", 0.0), {"0.5", "9", 2.0}})
    program.earlier.push_back(
        {{{"x", x}, {"y", "0.5"}, {"epochs", epochs}}, {{"loss", found}}, "a"});
  const auto course = follow(program);
  EXPECT_EQ(course.points.at(0), (Values{{"x", "0.5"}, {"y", "0.5"}, {"epochs", "9"}}));
  EXPECT_EQ(course.points.at(1), (Values{{"x", "0.1"}, {"y", "0.5"}, {"epochs", "9"}}));
  EXPECT_EQ(course.trials[0].trial.label, "1@9");
  EXPECT_EQ(course.trials[2].trial.label.substr(0, 2), "3@");
}

TEST(Transfer, TheSearchContinuesAsWithoutAWarmStart) {
  for (const auto method : kMethods)
    for (const auto& [at, factor] : {std::pair(0.3, 1.0), {0.35, 1.0}, {0.3, 64.0}, {0.3, -1.0}}) {
      const auto cold = follow(searched(method, 20, 3));
      Program program = searched(method, 23, 3);
      add_run(program, "a", at, factor);
      const auto warm = follow(program);
      ASSERT_GT(warm.points.size(), kRemeasured);
      EXPECT_EQ(std::vector<Values>(warm.points.begin() + 3, warm.points.end()), cold.points)
          << Search::kMethodNames.name(method) << " " << at << " " << factor;
      EXPECT_LE(warm.best, cold.best);
    }
}

TEST(Transfer, NoMoreTrialsAreMadeThanSamples) {
  for (const auto method : kMethods)
    for (const std::int64_t samples : {1, 2, 3, 4}) {
      Program program = searched(method, samples, 3);
      add_run(program, "a", 0.3, 1);
      std::set<std::string> trials;
      for (const auto& trial : follow(program).trials)
        trials.insert(trial.trial.label.substr(0, trial.trial.label.find('@')));
      EXPECT_EQ(trials.size(), static_cast<std::size_t>(samples));
    }
}

TEST(Transfer, AnEqualScoreOfTheBestPointIsNoted) {
  Program program = searched(Search::Method::cma_es, 5, 3);
  add_run(program, "a", 0.3, 1);
  EXPECT_EQ(follow(program).notes,
            std::vector<std::string>{"warm start: the best trial of a has the same loss here"});
  program.earlier.clear();
  add_run(program, "a", 0.3, 2);
  EXPECT_TRUE(follow(program).notes.empty());
}

TEST(Transfer, EarlierPointsAreAdaptedToThePresentSpace) {
  Program program;
  program.params = {{.name = "x", .choices = {}, .min = 0, .max = 1},
                    {.name = "n", .choices = {}, .min = 1, .max = 9, .integer = true},
                    {.name = "net", .choices = {"a", "b"}},
                    {.name = "data", .choices = {"new"}}};
  program.params.push_back({.name = "depth", .choices = {"1", "2"}, .when = {{"net", {"b"}}}});
  program.goal = Goal{.metric = "loss", .maximize = false};
  const Numbers scored{{"loss", 1}};
  EXPECT_EQ(adapted(program, {{"x", "0.5"}, {"n", "3"}, {"net", "b"}, {"depth", "2"}}, scored),
            (Values{{"x", "0.5"}, {"n", "3"}, {"net", "b"}, {"data", "new"}, {"depth", "2"}}));
  EXPECT_EQ(adapted(program, {{"x", "0.5"}}, scored),
            (Values{{"x", "0.5"}, {"n", "5"}, {"net", "a"}, {"data", "new"}}))
      << "added: the middle and the first choice";
  EXPECT_EQ(adapted(program, {{"x", "0.5"}, {"gone", "7"}, {"data", "old"}}, scored),
            (Values{{"x", "0.5"}, {"n", "5"}, {"net", "a"}, {"data", "new"}}))
      << "removed and fixed";
  EXPECT_EQ(*find_value(*adapted(program, {{"n", "3.0"}}, scored), "n"), "3") << "now an integer";
  EXPECT_FALSE(adapted(program, {{"n", "3.5"}}, scored)) << "between the integers";
  EXPECT_FALSE(adapted(program, {{"x", "1.5"}}, scored)) << "outside";
  EXPECT_FALSE(adapted(program, {{"x", "0.5"}, {"net", "c"}}, scored)) << "no such choice";
  EXPECT_FALSE(adapted(program, {{"x", "0.5"}}, {})) << "without a score";
  EXPECT_FALSE(adapted(program, {{"gone", "7"}, {"data", "new"}}, scored)) << "nothing in common";
  program.search.budget = Budget{"epochs", 1, 9, 3};
  EXPECT_EQ(adapted(program, {{"x", "0.5"}, {"epochs", "3"}}, scored)->back().second, "3");
  EXPECT_EQ(adapted(program, {{"x", "0.5"}}, scored)->back().second, "9") << "the whole budget";
  EXPECT_FALSE(adapted(program, {{"x", "0.5"}, {"epochs", "4"}}, scored)) << "not a level";
}

TEST(Transfer, ASpaceThatIsWhollyMeasuredEndsTheSearch) {
  Program program = searched(Search::Method::tpe, 10, 1);
  program.params = {{.name = "net", .choices = {"a", "b", "c"}}};
  for (const char* net : {"a", "b", "c"})
    program.earlier.push_back({{{"net", net}}, {{"loss", net[0] == 'b' ? 1.0 : 2.0}}, "grid"});
  const auto proposer = make_proposer(program);
  std::vector<std::string> tried;
  for (std::int64_t number = 1; const auto proposal = proposer->ask(); ++number) {
    tried.push_back(proposal->params[0].second);
    proposer->tell({number, *proposal, TrialReport::State::done, {-1}});
  }
  ASSERT_EQ(tried.size(), 3U) << "each once";
  EXPECT_EQ(tried[0], "b");
}

TEST(Transfer, AnEnqueuedPointAndOneThatTheSpaceGrewByDoNotRepeatMeasurements) {
  Program program = searched(Search::Method::tpe, 10, 1);
  add_run(program, "a", 0.3, 1);
  const auto proposer = make_proposer(program);
  proposer->tell({1, {"1", {{"x", "0.123"}, {"y", "0.5"}}}, TrialReport::State::done, {-1}});
  std::set<Values> points;
  for (std::int64_t number = 2; number <= 5; ++number) {
    auto proposal = *proposer->ask();
    EXPECT_TRUE(points.insert(proposal.params).second);
    proposal.params.emplace_back("z", "7");
    proposer->tell({number, proposal, TrialReport::State::done, {-1}});
  }
}

TEST(Transfer, AnswersByWhatItWasToldAndNotByWhen) {
  for (const auto method : {Search::Method::tpe, Search::Method::cma_es, Search::Method::halving}) {
    Program program = searched(method, 30, 4);
    add_run(program, "a", 0.3, 10);
    add_run(program, "b", 0.4, 1);
    const auto all = follow(program).trials;
    for (const std::size_t count : {1U, 3U, 7U, 8U, 21U}) {
      const auto in_order = make_proposer(program), shuffled = make_proposer(program);
      std::vector<TrialReport> part(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
      for (const auto& each : part) in_order->tell(each);
      Rng rng(count);
      for (std::size_t i = part.size(); i > 1; --i) std::swap(part[i - 1], part[rng.below(i)]);
      for (const auto& each : part) shuffled->tell(each);
      EXPECT_EQ(in_order->ask()->params, all[count].trial.params);
      EXPECT_TRUE(has_budget(method) || shuffled->ask()->params == all[count].trial.params);
    }
  }
}

}  // namespace
}  // namespace berth::experiment
