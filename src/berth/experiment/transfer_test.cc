#include "berth/experiment/transfer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "berth/base/rng.h"
#include "berth/base/units.h"
#include "berth/experiment/sampler.h"
#include "berth/experiment/space.h"

namespace berth::experiment {
namespace {

constexpr Search::Method kAll[] = {Search::Method::tpe, Search::Method::gp, Search::Method::cma_es};

Program searched(Search::Method method, std::int64_t samples, std::uint64_t seed) {
  Program program;
  program.params = {{.name = "x", .choices = {}, .min = 0, .max = 1},
                    {.name = "y", .choices = {}, .min = 0, .max = 1}};
  program.goal = Goal{.metric = "loss", .maximize = false};
  program.search = {.method = method, .samples = samples, .seed = seed};
  return program;
}

double number_of(const Values& values, const char* name) {
  return *parse_number(*find_value(values, name));
}

double loss(const Values& values, double at) {
  return std::pow(number_of(values, "x") - at, 2) + std::pow(number_of(values, "y") - at, 2);
}

/// A run of random trials of a loss with its least value at (at, at), on a scale of its own. Where
/// factor, level and the number of trials are powers of two, every loss is exact, and so is the
/// mean.
void add_run(Program& program, const std::string& name, double at, double factor, double level,
             std::int64_t trials = 40) {
  for (std::int64_t trial = 1; trial <= trials; ++trial) {
    const Values point = quasi_random(program.params, trial, 99);
    const double rounded = std::ldexp(std::round(std::ldexp(loss(point, at), 20)), -20);
    program.earlier.push_back({point, {{"loss", level + factor * rounded}}, name});
  }
}

/// One trial after the other; the least loss of all.
double searched_to(const Program& program, double at, std::vector<TrialReport>* told = nullptr) {
  const auto proposer = make_proposer(program);
  double least = HUGE_VAL;
  for (std::int64_t number = 1;; ++number) {
    const auto proposal = proposer->ask();
    if (!proposal) return least;
    TrialReport report{.number = number, .trial = *proposal};
    proposer->tell(report);
    const double found = loss(proposal->params, at);
    least = std::min(least, found);
    report.state = TrialReport::State::done;
    report.scores = {-found};
    proposer->tell(report);
    if (told != nullptr) told->push_back(report);
  }
}

/// The sum over seeds of what ten trials come to.
double total(Search::Method method, const std::vector<EarlierTrial>& earlier, double at) {
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Program program = searched(method, 10, seed);
    program.earlier = earlier;
    sum += searched_to(program, at);
  }
  return sum;
}

TEST(Transfer, AnotherLevelAndUnitOfTheLossMakeNoDifference) {
  for (const auto method : kAll) {
    Program plain = searched(method, 1, 1), scaled = plain;
    add_run(plain, "a", 0.3, 1, 0, 32);
    add_run(scaled, "a", 0.3, 1024, -65536, 32);
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      plain.search.seed = scaled.search.seed = seed;
      plain.search.samples = scaled.search.samples = 9;
      std::vector<TrialReport> one, other;
      searched_to(plain, 0.3, &one);
      searched_to(scaled, 0.3, &other);
      ASSERT_EQ(one.size(), other.size());
      for (std::size_t i = 0; i < std::min<std::size_t>(one.size(), 8); ++i)
        for (const char* name : {"x", "y"})
          EXPECT_EQ(number_of(one[i].trial.params, name), number_of(other[i].trial.params, name))
              << Search::kMethodNames.name(method) << " " << seed << " " << i;
    }
  }
}

TEST(Transfer, RunsOfSeveralScalesHelpAndNoneDrownsThePresentOne) {
  Program with = searched(Search::Method::tpe, 10, 1);
  add_run(with, "far", 0.3, 1e4, -1e6);  // a loss of another kind, far below
  add_run(with, "near", 0.3, 1e-3, 5);
  Program misled = searched(Search::Method::tpe, 10, 1);
  add_run(misled, "wrong", 0.9, 1, -1000);  // each of its trials seems better than any of ours
  for (const auto method : {Search::Method::tpe, Search::Method::gp}) {
    const double alone = total(method, {}, 0.3);
    EXPECT_LT(total(method, with.earlier, 0.3), alone / 2) << Search::kMethodNames.name(method);
  }
  // What is found now counts too, so that the search comes away from where the other led it.
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    misled.search.seed = seed;
    misled.search.samples = 60;
    sum += searched_to(misled, 0.3);
  }
  EXPECT_LT(sum / 10, 0.02) << "the earlier run's best place has a loss of 0.72 here";
}

TEST(Transfer, APointThatAnEarlierRunTriedIsTriedHereToo) {
  Program program = searched(Search::Method::tpe, 10, 1);
  program.params = {{.name = "net", .choices = {"a", "b", "c"}}};
  for (const char* net : {"a", "b", "c"})
    program.earlier.push_back({{{"net", net}}, {{"loss", net[0] == 'b' ? 1.0 : 2.0}}, "grid"});
  const auto proposer = make_proposer(program);
  std::set<Values> tried;
  for (std::int64_t number = 1; const auto proposal = proposer->ask(); ++number) {
    tried.insert(proposal->params);
    proposer->tell({number, *proposal, TrialReport::State::done, {-1}});
  }
  EXPECT_EQ(tried.size(), 3U) << "each once";
}

TEST(Transfer, AnswersByWhatItWasToldAndNotByWhen) {
  for (const auto method : {Search::Method::tpe, Search::Method::cma_es}) {
    Program program = searched(method, 30, 4);
    add_run(program, "a", 0.3, 10, 7);
    add_run(program, "b", 0.4, 1, 0);
    std::vector<TrialReport> told;
    searched_to(program, 0.3, &told);
    for (const std::size_t count : {1U, 3U, 7U, 8U, 21U}) {
      const auto in_order = make_proposer(program), shuffled = make_proposer(program);
      std::vector<TrialReport> part(told.begin(),
                                    told.begin() + static_cast<std::ptrdiff_t>(count));
      for (const auto& each : part) in_order->tell(each);
      Rng rng(count);
      for (std::size_t i = part.size(); i > 1; --i) std::swap(part[i - 1], part[rng.below(i)]);
      for (const auto& each : part) shuffled->tell(each);
      EXPECT_EQ(in_order->ask()->params, told[count].trial.params);
      EXPECT_EQ(shuffled->ask()->params, told[count].trial.params);
    }
  }
}

}  // namespace
}  // namespace berth::experiment
