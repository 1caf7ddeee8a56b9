#include "berth/experiment/stopping/early_stop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "berth/base/rng.h"
#include "berth/experiment/stopping/curve.h"

namespace berth::experiment {
namespace {

using End = EarlyStopper::End;

/// Reports until it is told to end; at which report that was, or 0.
std::size_t run(EarlyStopper& stopper, std::int64_t trial, const std::vector<double>& values,
                std::string* why = nullptr) {
  stopper.begin(trial);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto because = stopper.report(trial, values[i]);
    if (!because) continue;
    if (why != nullptr) *why = *because;
    stopper.end(trial, End::stopped_early);
    return i + 1;
  }
  stopper.end(trial, End::completed);
  return 0;
}

std::vector<double> flat(double value, std::size_t count = 10) {
  return std::vector<double>(count, value);
}

TEST(EarlyStop, TheMedianPolicyEndsWhatIsBelowTheMedianOfAverages) {
  EarlyStopper stopper({.policy = EarlyStop::Policy::median, .warmup = 3}, {.metric = "acc"});
  EXPECT_EQ(run(stopper, 1, flat(0.5)), 0);
  EXPECT_EQ(run(stopper, 2, flat(0.7)), 0);
  EXPECT_EQ(run(stopper, 3, flat(0.9)), 0);
  std::string why;
  EXPECT_EQ(run(stopper, 4, flat(0.6), &why), 4) << "the first after the warm-up";
  EXPECT_EQ(why,
            "early_stop: median ended it at report 4: "
            "its best acc in 4 reports is 0.6; the median of the averages of 3 other trials by "
            "then is 0.7");
  EXPECT_EQ(run(stopper, 5, {0.1, 0.1, 0.8, 0.1, 0.1}), 0) << "its best counts, not its last";
}

TEST(EarlyStop, SmallIsGoodWhereTheGoalSaysSo) {
  EarlyStopper stopper({.policy = EarlyStop::Policy::median, .warmup = 0},
                       {.metric = "loss", .maximize = false});
  EXPECT_EQ(run(stopper, 1, flat(2)), 0);
  std::string why;
  EXPECT_EQ(run(stopper, 2, flat(3), &why), 1);
  EXPECT_EQ(why,
            "early_stop: median ended it at report 1: "
            "its best loss in 1 reports is 3; the median of the averages of 1 other trial by then "
            "is 2");
  EXPECT_EQ(run(stopper, 3, flat(1)), 0);
}

TEST(EarlyStop, ItLooksOnlySoOften) {
  EarlyStopper stopper({.policy = EarlyStop::Policy::median, .warmup = 2, .every = 4},
                       {.metric = "m"});
  EXPECT_EQ(run(stopper, 1, flat(1)), 0);
  EXPECT_EQ(run(stopper, 2, {2, 2, 2, 0, 0}), 0) << "at report 3 it was the better one";
  EXPECT_EQ(run(stopper, 3, flat(0)), 3);
  EXPECT_EQ(run(stopper, 4, {0, 0, 9, 0, 0, 0, 0}), 0) << "9 is its best ever after";
}

TEST(EarlyStop, ABanditMayLieBackByItsSlack) {
  EarlyStopper stopper({.policy = EarlyStop::Policy::bandit, .warmup = 0, .slack = 0.2},
                       {.metric = "m"});
  EXPECT_EQ(run(stopper, 1, flat(10)), 0);
  EXPECT_EQ(run(stopper, 2, flat(8)), 0);
  std::string why;
  EXPECT_EQ(run(stopper, 3, flat(7.9), &why), 1);
  EXPECT_EQ(why,
            "early_stop: bandit ended it at report 1: "
            "its best m in 1 reports is 7.9; another trial had 10 by then, and 8 is the bound with "
            "a slack of 0.2");
  EarlyStopper negative({.policy = EarlyStop::Policy::bandit, .warmup = 0, .slack = 0.2},
                        {.metric = "m"});
  EXPECT_EQ(run(negative, 1, flat(-10)), 0);
  EXPECT_EQ(run(negative, 2, flat(-12)), 0);
  EXPECT_EQ(run(negative, 3, flat(-12.1)), 1);
}

TEST(EarlyStop, TruncationEndsTheWorstPart) {
  EarlyStopper stopper({.policy = EarlyStop::Policy::truncation, .warmup = 0, .part = 0.4},
                       {.metric = "m"});
  EXPECT_EQ(run(stopper, 1, flat(5)), 0);
  EXPECT_EQ(run(stopper, 2, flat(4)), 0) << "of two, 1.2 go on: 2";
  EXPECT_EQ(run(stopper, 3, flat(3)), 1) << "of three, 1.8 go on: 2";
  EXPECT_EQ(run(stopper, 4, flat(3.5)), 2) << "of those that came as far, again the third";
  std::string why;
  EXPECT_EQ(run(stopper, 5, flat(2), &why), 1);
  EXPECT_EQ(why,
            "early_stop: truncation ended it at report 1: its best m in 1 reports is 2, number 5 "
            "of the 5 trials that came this far; the best 3 continue");
}

TEST(EarlyStop, TheBestAndTheLastThatRunsAreSpared) {
  EarlyStopper stopper({.policy = EarlyStop::Policy::median, .warmup = 0}, {.metric = "m"});
  for (std::int64_t trial = 1; trial <= 2; ++trial) stopper.begin(trial);
  EXPECT_FALSE(stopper.report(1, 5));
  EXPECT_TRUE(stopper.report(2, 4));
  stopper.end(2, End::stopped_early);
  stopper.begin(3);
  EXPECT_FALSE(stopper.report(3, 6)) << "the best";
  stopper.end(3, End::failed);
  EXPECT_FALSE(stopper.report(1, -5)) << "nobody else runs, and none has come to an end";
}

TEST(EarlyStop, AnotherAttemptBeginsAnewAndAFailedOneTellsNothing) {
  EarlyStopper stopper({.policy = EarlyStop::Policy::median, .warmup = 0}, {.metric = "m"});
  EXPECT_EQ(run(stopper, 1, flat(1)), 0);
  stopper.begin(2);
  EXPECT_FALSE(stopper.report(2, 100));
  stopper.begin(2);
  EXPECT_TRUE(stopper.report(2, 0)) << "what the first attempt reported is gone";
  stopper.begin(3);
  EXPECT_FALSE(stopper.report(3, 50));
  stopper.end(3, End::failed);
  EXPECT_EQ(run(stopper, 4, flat(1)), 0) << "3 is no rival";
}

/// What is told twice gives the same stops: a resume replays what is recorded.
TEST(EarlyStop, IsAFunctionOfTheReportsAlone) {
  for (const auto policy : {EarlyStop::Policy::median, EarlyStop::Policy::bandit,
                            EarlyStop::Policy::truncation, EarlyStop::Policy::curve}) {
    const auto stops = [&](bool replayed) {
      EarlyStop how{.policy = policy, .warmup = 2, .every = 2, .steps = 20};
      std::optional<EarlyStopper> stopper(std::in_place, how, Goal{.metric = "m"});
      Rng rng(7);
      std::vector<std::pair<std::vector<double>, std::size_t>> past;
      for (std::int64_t trial = 1; trial <= 40; ++trial) {
        if (replayed) {
          stopper.emplace(how, Goal{.metric = "m"});
          for (std::size_t i = 0; i < past.size(); ++i) {
            const auto number = static_cast<std::int64_t>(i + 1);
            const auto& [values, stop] = past[i];
            stopper->begin(number);
            for (std::size_t at = 0; at < (stop == 0 ? values.size() : stop); ++at)
              (void)stopper->report(number, values[at]);
            stopper->end(number, stop == 0 ? End::completed : End::stopped_early);
          }
        }
        std::vector<double> values;
        const double limit = rng.uniform(), speed = rng.uniform();
        for (int step = 1; step <= 20; ++step)
          values.push_back(limit * (1 - std::exp(-speed * step)) + 0.01 * rng.uniform());
        past.emplace_back(values, run(*stopper, trial, values));
      }
      std::vector<std::size_t> all;
      for (const auto& each : past) all.push_back(each.second);
      return all;
    };
    EXPECT_EQ(stops(false), stops(true));
    const auto seen = stops(false);
    EXPECT_GT(std::ranges::count_if(seen, [](auto at) { return at > 0; }), 5);
  }
}

std::vector<double> rising(double limit, double rate, int count, double noise, Rng& rng) {
  std::vector<double> values;
  for (int step = 1; step <= count; ++step)
    values.push_back(limit - limit * std::exp(-rate * step) + noise * (rng.uniform() - 0.5));
  return values;
}

TEST(Curve, TellsWhatWillStayBelowFromWhatWillNot) {
  Rng rng(1);
  int hopeless_seen = 0, hopeful_kept = 0;
  constexpr int kCases = 200;
  for (int i = 0; i < kCases; ++i) {
    const double rate = 0.05 + 0.2 * rng.uniform();
    const auto low = rising(0.6, rate, 15, 0.02, rng), high = rising(0.95, rate, 15, 0.02, rng);
    hopeless_seen += *chance_to_exceed(low, 60, 0.9) < 0.05 ? 1 : 0;
    hopeful_kept += *chance_to_exceed(high, 60, 0.9) >= 0.05 ? 1 : 0;
  }
  EXPECT_GT(hopeless_seen, kCases * 7 / 10);
  EXPECT_EQ(hopeful_kept, kCases) << "one that would win is never given up here";
}

TEST(Curve, SaysNothingOfTooFewAndBearsAnything) {
  EXPECT_FALSE(chance_to_exceed(std::vector<double>{1, 2, 3}, 10, 5));
  for (const auto& values : std::vector<std::vector<double>>{flat(0),
                                                             flat(1e300),
                                                             flat(-1e-300),
                                                             {-1e308, 1e308, 0, 0},
                                                             {1, -1, 1, -1},
                                                             {5, 4, 3, 2, 1},
                                                             {0, 0, 0, 1e9}}) {
    const auto chance = chance_to_exceed(values, 100, 0.5);
    if (!chance) continue;  // more than a double holds
    EXPECT_GE(*chance, 0);
    EXPECT_LE(*chance, 1);
  }
}

TEST(EarlyStop, ATrialRecoversByTheReportsThatFollow) {
  EarlyStopper stopper({.policy = EarlyStop::Policy::median, .warmup = 1}, {.metric = "acc"});
  run(stopper, 1, flat(0.5));
  run(stopper, 2, flat(0.7));
  stopper.begin(3);
  stopper.report(3, 0.1);
  EXPECT_TRUE(stopper.report(3, 0.1));
  EXPECT_FALSE(stopper.has_recovered(3));
  stopper.report(3, 0.1);
  EXPECT_FALSE(stopper.has_recovered(3)) << "as poor as before";
  stopper.report(3, 0.99);
  EXPECT_TRUE(stopper.has_recovered(3));
  for (int i = 0; i < 100; ++i) stopper.report(3, 0.1);
  EXPECT_TRUE(stopper.has_recovered(3)) << "no other came as far, and its best is the best of all";
  EXPECT_FALSE(stopper.has_recovered(4)) << "an unknown trial";
}

}  // namespace
}  // namespace berth::experiment
