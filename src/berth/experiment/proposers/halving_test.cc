#include "berth/experiment/proposers/halving.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "berth/base/units.h"
#include "berth/experiment/proposers/space.h"

namespace berth::experiment {
namespace {

Program program(Search::Method method, std::int64_t samples, bool model = false) {
  Program program;
  program.params = {{.name = "x", .choices = {}, .min = 0, .max = 1},
                    {.name = "y", .choices = {}, .min = 0, .max = 1}};
  program.search = {.method = method, .samples = samples, .seed = 5};
  program.search.budget = Budget{"epochs", 1, 81, 3};
  program.search.model = model;
  return program;
}

double amount(const Proposal& trial) {
  return *parse_number(*find_value(trial.params, "epochs"));
}

/// Rises with what is spent, the sooner the better the trial is in the end.
double score(const Values& values) {
  const double x = *parse_number(*find_value(values, "x")) - 0.3;
  const double y = *parse_number(*find_value(values, "y")) - 0.6;
  const double limit = 1 - x * x - y * y;
  return limit * (1 - std::exp(-0.15 * *parse_number(*find_value(values, "epochs")) - 0.1));
}

struct Outcome {
  std::vector<TrialReport> told;
  double best = -1, spent = 0;
};

/// Six parameters, of which a choice moves the best place of the others; what little training shows
/// leans towards another place (Falkner et al., 2018, have such functions).
Program steep(Search::Method method, std::uint64_t seed, bool model) {
  Program of = program(method, 143, model);
  of.params.clear();
  for (const char* name : {"a", "b", "c", "d", "e"})
    of.params.push_back({.name = name, .choices = {}, .min = 0, .max = 1});
  of.params.push_back({.name = "net", .choices = {"flat", "deep", "wide"}});
  of.search.seed = seed;
  return of;
}

double steep_score(const Values& values) {
  const double spent = *parse_number(*find_value(values, "epochs")) / 81;
  const bool deep = *find_value(values, "net") == "deep";
  double distance = deep ? 0 : 0.3;
  for (const auto& [name, value] : values)
    if (name != "net" && name != "epochs")
      distance += std::pow(*parse_number(value) - (deep ? 0.7 : 0.4) - 0.1 * (1 - spent), 2);
  return (1 - distance) * (1 - std::exp(-8 * spent - 0.3));
}

/// As many side by side as given, ending in an order by the lot; some fail.
Outcome simulate(const Program& of, std::size_t workers, std::uint64_t seed, double failing = 0,
                 double (*valued)(const Values&) = score) {
  const auto proposer = make_proposer(of);
  Rng rng(seed);
  Outcome outcome;
  std::vector<std::size_t> open;
  std::set<std::string> labels;
  for (;;) {
    while (open.size() < workers) {
      const auto proposal = proposer->ask();
      if (!proposal) break;
      EXPECT_TRUE(labels.insert(proposal->label).second) << proposal->label << " twice";
      open.push_back(outcome.told.size());
      outcome.told.push_back(
          {.number = static_cast<std::int64_t>(outcome.told.size()) + 1, .trial = *proposal});
      proposer->tell(outcome.told.back());
    }
    if (open.empty()) return outcome;
    const auto at = open.begin() + static_cast<std::ptrdiff_t>(rng.below(open.size()));
    TrialReport& told = outcome.told[*at];
    open.erase(at);
    outcome.spent += amount(told.trial);
    told.state = rng.uniform() < failing ? TrialReport::State::failed : TrialReport::State::done;
    if (told.state == TrialReport::State::done) {
      told.scores = {valued(told.trial.params)};
      if (amount(told.trial) == of.search.budget->max)
        outcome.best = std::max(outcome.best, told.scores[0]);
    }
    proposer->tell(told);
  }
}

TEST(Halving, TheLevelsEndWithTheWholeBudget) {
  EXPECT_EQ(levels({"b", 1, 81, 3}), (std::vector<double>{1, 3, 9, 27, 81}));
  EXPECT_EQ(levels({"b", 5, 40, 2}), (std::vector<double>{5, 10, 20, 40}));
  EXPECT_EQ(levels({"b", 4, 100, 3}), (std::vector<double>{11, 33, 100}));
  EXPECT_EQ(levels({"b", 7, 7, 2}), (std::vector<double>{7}));
  EXPECT_EQ(levels({"b", 0.25, 1, 2}), (std::vector<double>{0.25, 0.5, 1}));
  const std::vector<double> parts = levels({"b", 1, 5, 3, false});
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(budget_text({"b", 1, 5, 3, false}, parts[0]), "1.6666666666666667");
  EXPECT_EQ(levels({"b", 1, 5, 3}), (std::vector<double>{2, 5}));
  EXPECT_EQ(hyperband_round({"b", 1, 81, 3}), 81 + 34 + 15 + 8 + 5);
  EXPECT_EQ(hyperband_samples({"b", 1, 81, 3}, 2), 81 + 34);
  EXPECT_EQ(hyperband_samples({"b", 1, 81, 3}, 11), 2 * 143 + 81);
}

/// The number of trials, of all budgets, in so many brackets as HpBandSter makes them.
std::size_t jobs(double max, std::int64_t reduction, std::int64_t brackets) {
  Program of = program(Search::Method::hyperband, 0, true);
  of.search.budget = Budget{"epochs", 1, max, reduction};
  of.search.budget->whole_groups = true;
  of.search.samples = hyperband_samples(*of.search.budget, brackets);
  return simulate(of, 1, 1).told.size();
}

TEST(Halving, WholeGroupsMakeAsManyTrialsAsHpBandSter) {
  EXPECT_EQ(jobs(9, 3, 3), 9U + 3 + 1 + 3 + 1 + 3);
  EXPECT_EQ(jobs(9, 3, 4), 20U + 13) << "the first bracket again";
  EXPECT_EQ(jobs(27, 3, 4), 27U + 9 + 3 + 1 + 9 + 3 + 1 + 6 + 2 + 4);
  EXPECT_EQ(jobs(8, 2, 4), 8U + 4 + 2 + 1 + 4 + 2 + 1 + 4 + 2 + 4);
  EXPECT_EQ(jobs(1, 3, 2), 2U);
}

TEST(Halving, OneOfThreeGoesOnAndOneAtLeastToTheEnd) {
  for (const std::int64_t samples : {1, 2, 4, 27, 81, 100}) {
    const auto outcome = simulate(program(Search::Method::halving, samples), 1, 1);
    std::map<double, std::int64_t> given;
    for (const auto& told : outcome.told) ++given[amount(told.trial)];
    EXPECT_EQ(given[1], samples);
    EXPECT_GE(given[81], 1) << samples;
    for (const double level : {3, 9, 27, 81})
      EXPECT_LE(given[level], 1 + given[level / 3] / 2) << samples << ": some too soon, but few";
  }
}

TEST(Halving, FindsWhatFullTrainingFindsForLess) {
  for (const bool model : {false, true}) {
    const auto some = simulate(program(Search::Method::halving, 81, model), 1, 3);
    double best_of_all = -1;
    for (std::int64_t trial = 1; trial <= 81; ++trial) {
      Values values = quasi_random(program(Search::Method::halving, 81).params, trial, 5);
      values.emplace_back("epochs", "81");
      best_of_all = std::max(best_of_all, score(values));
    }
    EXPECT_GE(some.best, best_of_all - 1e-9) << model;
    EXPECT_LT(some.spent, 0.4 * 81 * 81) << model;
  }
}

TEST(Halving, AModelFindsMoreThanChance) {
  constexpr std::uint64_t kSeeds = 20;
  for (const auto method : {Search::Method::halving, Search::Method::hyperband}) {
    double lacking[2] = {0, 0}, spent[2] = {0, 0};
    for (const bool model : {false, true})
      for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        const auto outcome = simulate(steep(method, seed, model), 4, seed, 0, steep_score);
        lacking[model] += (1 - outcome.best) / kSeeds;
        spent[model] += outcome.spent / kSeeds;
      }
    EXPECT_LT(lacking[1], 0.9 * lacking[0]) << Search::kMethodNames.name(method);
    EXPECT_LT(spent[1], spent[0]) << Search::kMethodNames.name(method);
  }
}

/// Whatever the order and the failures: it ends, gives every trial its levels one by one, and what
/// it answers depends on what it was told, not on when.
TEST(Halving, HoldsInAnyOrder) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const auto method = seed % 2 == 0 ? Search::Method::halving : Search::Method::hyperband;
    const Program of = program(method, 40, seed % 3 == 0);
    const auto outcome = simulate(of, 1 + seed % 5, seed, seed % 4 == 0 ? 0.2 : 0);
    std::map<std::string, double> reached;
    for (const auto& told : outcome.told) {
      double& before = reached[told.trial.label.substr(0, told.trial.label.find('@'))];
      EXPECT_GT(amount(told.trial), before);
      if (before > 0) {
        EXPECT_EQ(amount(told.trial), before * 3);
      }
      before = amount(told.trial);
    }
    EXPECT_EQ(reached.size(), 40);

    Rng rng(seed);
    std::vector<TrialReport> part(
        outcome.told.begin(),
        outcome.told.begin() + static_cast<std::ptrdiff_t>(outcome.told.size() / 2));
    const auto in_order = make_proposer(of);
    for (const auto& told : part) in_order->tell(told);
    for (std::size_t i = part.size(); i > 1; --i) std::swap(part[i - 1], part[rng.below(i)]);
    const auto shuffled = make_proposer(of);
    for (const auto& told : part) {
      TrialReport open = told;
      open.state = TrialReport::State::open;
      open.scores.clear();
      shuffled->tell(open);
    }
    for (const auto& told : part) shuffled->tell(told);
    const auto one = in_order->ask(), other = shuffled->ask();
    ASSERT_EQ(one.has_value(), other.has_value()) << seed;
    if (!one) continue;
    EXPECT_EQ(one->label, other->label) << seed;
    EXPECT_EQ(one->params, other->params) << seed;
  }
}

TEST(Halving, HyperbandBeginsAtEveryLevel) {
  const auto outcome = simulate(program(Search::Method::hyperband, 143), 1, 1);
  std::map<double, std::set<std::string>> begun;
  std::set<std::string> known;
  for (const auto& told : outcome.told) {
    const std::string trial = told.trial.label.substr(0, told.trial.label.find('@'));
    if (known.insert(trial).second) begun[amount(told.trial)].insert(trial);
  }
  EXPECT_EQ(begun[1].size(), 81);
  EXPECT_EQ(begun[3].size(), 34);
  EXPECT_EQ(begun[9].size(), 15);
  EXPECT_EQ(begun[27].size(), 8);
  EXPECT_EQ(begun[81].size(), 5);
}

}  // namespace
}  // namespace berth::experiment
