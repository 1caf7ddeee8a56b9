#include "berth/experiment/proposers/population.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "berth/base/units.h"
#include "berth/experiment/proposers/halving.h"
#include "berth/experiment/proposers/space.h"

namespace berth::experiment {
namespace {

Program of_population(std::int64_t samples, std::uint64_t seed = 3) {
  Program program;
  program.params = {
      {.name = "lr", .choices = {}, .min = 1e-4, .max = 1, .scale = Parameter::Scale::log},
      {.name = "width", .choices = {"16", "32"}},
      {.name = "drop", .choices = {}, .min = 0, .max = 1, .when = {{"width", {"32"}}}}};
  program.search = {.method = Search::Method::pbt, .samples = samples, .seed = seed};
  program.search.budget = Budget{.parameter = "epochs", .min = 10, .max = 35, .every = 10};
  program.search.explore = explored_by_default(program.params);
  return program;
}

using Lineage = std::map<std::string, Values>;  // by label

/// What is proposed, of trials whose ends come in an order by the lot, so many at once.
Lineage play(const Program& program, std::size_t at_once, Rng& lot,
             const std::function<std::optional<double>(const Proposal&)>& score) {
  const auto proposer = make_proposer(program);
  Lineage lineage;
  std::vector<TrialReport> open;
  std::int64_t number = 0;
  for (;;) {
    while (open.size() < at_once) {
      auto proposal = proposer->ask();
      if (!proposal) break;
      EXPECT_TRUE(lineage.emplace(proposal->label, proposal->params).second) << "twice";
      open.push_back({.number = ++number, .trial = *std::move(proposal)});
      proposer->tell(open.back());
    }
    if (open.empty()) return lineage;
    const auto at = static_cast<std::ptrdiff_t>(lot.below(open.size()));
    TrialReport ended = open[static_cast<std::size_t>(at)];
    open.erase(open.begin() + at);
    const auto scored = score(ended.trial);
    ended.state = scored ? TrialReport::State::done : TrialReport::State::failed;
    if (scored) ended.scores = {*scored};
    proposer->tell(ended);
  }
}

/// By chance, but the same for the same label.
std::optional<double> by_lot(const Proposal& proposal) {
  std::uint64_t hash = 7;
  for (const char letter : proposal.label) hash = mix(hash ^ static_cast<std::uint64_t>(letter));
  if (hash % 6 == 0) return std::nullopt;
  return static_cast<double>(hash % 5);  // many are equal
}

TEST(Population, LabelsAreReadAsTheyAreWritten) {
  const Budget budget = *of_population(4).search.budget;
  EXPECT_EQ(levels(budget), (std::vector<double>{10, 20, 30, 35}));
  EXPECT_EQ(label_of(budget, {3, 3}), "3@35");
  EXPECT_EQ(member_of(budget, "3@35"), (Member{3, 3}));
  for (const char* wrong : {"3", "3@", "@10", "0@10", "3@11", "best", "3@20.partial", "-1@10"})
    EXPECT_FALSE(member_of(budget, wrong)) << wrong;
  EXPECT_EQ(levels({.parameter = "b", .min = 5, .max = 20, .every = 5}),
            (std::vector<double>{5, 10, 15, 20}));
  EXPECT_EQ(levels({.parameter = "b", .min = 0.1, .max = 0.3, .whole = false, .every = 0.1}).size(),
            3U);
  EXPECT_EQ(levels({.parameter = "b", .min = 5, .max = 5, .every = 5}), (std::vector<double>{5}));
}

TEST(Population, TheWorstFifthGoesOnFromTheBest) {
  const Program program = of_population(10);
  Rng lot(1);
  const auto lineage = play(program, 10, lot, [](const Proposal& proposal) {
    return static_cast<double>(member_of(*of_population(10).search.budget, proposal.label)->trial);
  });
  ASSERT_EQ(lineage.size(), 40U);
  for (std::int64_t trial = 1; trial <= 10; ++trial) {
    const Values& values = lineage.at(fmt::format("{}@20", trial));
    const std::string parent = *find_value(values, kParent);
    if (trial > 2) {
      EXPECT_EQ(parent, fmt::format("{}@10", trial));
      Values before = lineage.at(parent);
      EXPECT_EQ(*find_value(values, "lr"), *find_value(before, "lr"));
    } else {
      EXPECT_TRUE(parent == "9@10" || parent == "10@10") << parent;
      EXPECT_EQ(*find_value(values, "width"), *find_value(lineage.at(parent), "width"));
      EXPECT_NE(*find_value(values, "lr"), *find_value(lineage.at(parent), "lr"));
    }
  }
}

/// Neither the order of ends nor how many run at once decides anything, and every trial gets every
/// part but where all of a generation failed.
TEST(Population, WhatComesOfItDependsOnScoresAlone) {
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    for (const std::int64_t samples : {1, 2, 5, 11}) {
      const Program program = of_population(samples, seed);
      Rng lot(seed);
      const auto alone = play(program, 1, lot, by_lot);
      for (const std::size_t at_once : {2U, 3U, 20U})
        EXPECT_EQ(play(program, at_once, lot, by_lot), alone) << seed << " " << samples;
      for (const auto& [label, values] : alone) {
        const auto* parent = find_value(values, kParent);
        const auto member = *member_of(*program.search.budget, label);
        ASSERT_EQ(parent == nullptr, member.level == 0) << label;
        if (parent == nullptr) continue;
        EXPECT_EQ(member_of(*program.search.budget, *parent)->level + 1, member.level);
        EXPECT_TRUE(by_lot({*parent, {}})) << label << " goes on from one that failed: " << *parent;
      }
    }
}

TEST(Population, AGenerationIsReplacedUnlessAllHaveFailed) {
  Rng lot(5);
  const auto but_one = play(of_population(6), 3, lot, [](const Proposal& proposal) {
    return proposal.label == "4@10"          ? std::optional(1.0)
           : proposal.label.ends_with("@10") ? std::nullopt
                                             : std::optional(2.0);
  });
  EXPECT_EQ(but_one.size(), 24U);
  for (std::int64_t trial = 1; trial <= 6; ++trial)
    EXPECT_EQ(*find_value(but_one.at(fmt::format("{}@20", trial)), kParent), "4@10");
  EXPECT_EQ(play(of_population(6), 3, lot, [](const Proposal&) { return std::nullopt; }).size(),
            6U);
}

/// The toy of Jaderberg et al. (2017), figure 2: either parameter alone leads a trial astray, and
/// only trials that change theirs on the way come to the best.
TEST(Population, FindsASchedule) {
  Program program = of_population(10);
  program.params = {{.name = "a", .choices = {}, .min = 0, .max = 1},
                    {.name = "b", .choices = {}, .min = 0, .max = 1}};
  program.search.explore = {"a", "b"};
  program.search.budget = Budget{.parameter = "epochs", .min = 4, .max = 200, .every = 4};
  std::map<std::string, std::pair<double, double>> weights;  // the checkpoints
  double best = 0;
  Rng lot(2);
  play(program, 4, lot, [&](const Proposal& proposal) {
    const auto* parent = find_value(proposal.params, kParent);
    auto [x, y] = parent ? weights.at(*parent) : std::pair(0.9, 0.9);
    for (int epoch = 0; epoch < 4; ++epoch) {
      x -= 0.01 * 2 * *parse_number(*find_value(proposal.params, "a")) * x;
      y -= 0.01 * 2 * *parse_number(*find_value(proposal.params, "b")) * y;
    }
    weights[proposal.label] = {x, y};
    best = std::max(best, 1.2 - x * x - y * y);
    return 1.2 - x * x - y * y;
  });
  EXPECT_GT(best, 1.1);
}

}  // namespace
}  // namespace berth::experiment
