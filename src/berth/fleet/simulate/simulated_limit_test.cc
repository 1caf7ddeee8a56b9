#include "berth/fleet/simulate/simulated_limit.h"

#include <gtest/gtest.h>

#include "berth/base/rng.h"
#include "berth/fleet/simulate/simulation.h"

namespace berth::fleet {
namespace {

RateQuestion question(int batch, double out_cv) {
  RateQuestion asked;
  asked.performance = {.max_batch = batch, .alpha_ms = 8, .beta_ms = 0.03, .gamma_ms = 0.00004};
  asked.load = {.in_tokens = 600, .out_tokens = 200, .in_cv = 0.8, .out_cv = out_cv};
  asked.batch = batch;
  asked.queue = 1000;
  asked.estimate_per_s = 8;
  return asked;
}

/// The figures of a replica at a rate, of other requests and many more than the search has.
struct Attained {
  double p95_ttft_ms = 0, p95_itl_ms = 0, mean_ttft_ms = 0, lost = 0;
};
Attained attained(const RateQuestion& asked, double rate_per_s) {
  const auto requests = draw_requests(traffic_of(asked.load, {}), 400'000, 77);
  const auto found =
      simulate(deployment_of(asked.performance, asked.batch, asked.queue), requests,
               1000 / rate_per_s, steady_window(requests, 1000 / rate_per_s, 0.05), 0);
  const std::array part{0.95};
  return {quantiles(found.ttft_ms, part)[0], found.itl.quantiles_ms(part)[0], found.mean_ttft_ms(),
          found.lost_part()};
}

TEST(SimulatedLimit, IsWhereManyOtherRequestsJustMeetTheTarget) {
  struct Case {
    int batch;
    double out_cv, ttft_ms, itl_ms;
  };
  for (const auto& [batch, out_cv, ttft_ms, itl_ms] :
       {Case{64, 1, 200, 0}, Case{32, 0, 150, 0}, Case{64, 1, 0, 20}, Case{128, 0.5, 300, 30}}) {
    SCOPED_TRACE(::testing::Message()
                 << "batch " << batch << ", ttft " << ttft_ms << ", itl " << itl_ms);
    RateQuestion asked = question(batch, out_cv);
    asked.target.percentiles.ttft_ms[2] = ttft_ms;
    asked.target.percentiles.itl_ms[2] = itl_ms;
    const auto is_within = [&](double rate_per_s) {
      const Attained is = attained(asked, rate_per_s);
      return (ttft_ms == 0 || is.p95_ttft_ms <= ttft_ms) &&
             (itl_ms == 0 || is.p95_itl_ms <= itl_ms) && is.lost <= 0.01;
    };
    const double limit = simulated_limit(asked);
    EXPECT_TRUE(is_within(0.96 * limit)) << limit;
    EXPECT_FALSE(is_within(1.04 * limit)) << limit;
    asked.estimate_per_s *= 3;
    EXPECT_NEAR(simulated_limit(asked), limit, 0.01 * limit) << "wherever it begins to look";
    EXPECT_EQ(simulated_limit(asked), simulated_limit(asked));
  }
}

TEST(SimulatedLimit, HoldsMeansAndLossToo) {
  RateQuestion asked = question(64, 1);
  asked.target.percentiles.ttft_ms[3] = 5000;
  const double loose = simulated_limit(asked);
  asked.target.ttft_ms = 40;
  const double mean = simulated_limit(asked);
  EXPECT_LT(mean, 0.97 * loose);
  EXPECT_NEAR(attained(asked, mean).mean_ttft_ms, 40, 2);
  asked.target.ttft_ms = 0;
  asked.queue = 0;
  const double lossy = simulated_limit(asked);
  EXPECT_LT(lossy, 0.97 * loose);
  EXPECT_NEAR(attained(asked, lossy).lost, 0.01, 0.003);
}

TEST(SimulatedLimit, IsNoneWhereEvenAnIdleReplicaIsLateAndEndsBelowSaturation) {
  RateQuestion asked = question(64, 1);
  asked.target.percentiles.ttft_ms[0] = 5;  // less than a step
  EXPECT_EQ(simulated_limit(asked), 0);
  asked.target.percentiles.ttft_ms[0] = 1e7;
  const double end = simulated_limit(asked);
  EXPECT_GT(end, 0);
  asked.target.percentiles.ttft_ms[0] = 1e8;
  EXPECT_EQ(simulated_limit(asked), end) << "a queue that grows shows late in a short history";
}

/// Most prompts are short and some are so long that they hold up many: more than lognormal lengths
/// of the same mean and variation do.
TEST(SimulatedLimit, AHistogramIsMoreThanItsVariation) {
  RateQuestion by_cv = question(64, 0);
  RateQuestion by_bins = by_cv;
  by_bins.load.in_histogram = *LengthHistogram::of({{200, 24}, {12'700, 1}});
  by_bins.load.in_tokens = by_cv.load.in_tokens = by_bins.load.in_histogram.mean();
  by_bins.load.in_cv = by_cv.load.in_cv = by_bins.load.in_histogram.cv();
  for (RateQuestion* asked : {&by_cv, &by_bins}) asked->target.percentiles.ttft_ms[2] = 200;
  const double limit = simulated_limit(by_bins);
  EXPECT_GT(limit, 0);
  EXPECT_LT(limit, 0.6 * simulated_limit(by_cv));
  EXPECT_LE(attained(by_bins, 0.9 * limit).p95_ttft_ms, 200);
  EXPECT_GT(attained(by_bins, 1.15 * limit).p95_ttft_ms, 200);
  RateQuestion same = by_bins;
  same.load.in_histogram = *LengthHistogram::of({{12'700, 1}, {200, 24}});
  EXPECT_EQ(same, by_bins);
  EXPECT_EQ(simulated_limit(same), limit);
  EXPECT_TRUE(by_cv < by_bins || by_bins < by_cv);
}

TEST(SimulatedLimit, ATighterTargetAndALongerAnswerNeverRaiseIt) {
  Rng rng(5);
  const LimitSearch search{.requests = 4000, .seed = 1, .precision = 0.003};
  for (int i = 0; i < 60; ++i) {
    RateQuestion asked = question(static_cast<int>(8 + rng.below(120)), rng.uniform());
    asked.load.in_tokens = static_cast<double>(100 + rng.below(1000));
    asked.target.percentiles.ttft_ms[2] = 60 + 400 * rng.uniform();
    asked.target.percentiles.itl_ms[2] = 10 + 40 * rng.uniform();
    const double limit = simulated_limit(asked, search);
    RateQuestion tighter = asked;
    tighter.target.percentiles.ttft_ms[2] *= 0.8;
    EXPECT_LE(simulated_limit(tighter, search), limit * 1.004);
    RateQuestion longer = asked;
    longer.load.out_tokens *= 1.5;
    EXPECT_LE(simulated_limit(longer, search), limit * 1.01);
  }
}

}  // namespace
}  // namespace berth::fleet
