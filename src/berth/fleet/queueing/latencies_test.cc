#include "berth/fleet/queueing/latencies.h"

#include <gtest/gtest.h>

#include <cmath>

#include "berth/base/rng.h"

namespace berth::fleet {
namespace {

struct Drawn {
  Demand demand;
  Performance performance;
  int batch = 1;
};

/// Chat and code, of 0.1 s to a minute a request, on small cards and large ones.
Drawn drawn_replica(Rng& rng) {
  Drawn s;
  s.demand.in_tokens = std::floor(std::exp2(4 + 8 * rng.uniform()));
  s.demand.out_tokens = std::floor(std::exp2(3 + 7 * rng.uniform()));
  s.demand.max_queue = static_cast<int>(rng.below(500));
  s.demand.in_cv = rng.below(3) == 0 ? 0 : 1.5 * rng.uniform();
  s.demand.out_cv = rng.below(3) == 0 ? 0 : 1.5 * rng.uniform();
  s.performance = {.alpha_ms = 4 + 30 * rng.uniform(),
                   .beta_ms = 0.02 + 0.1 * rng.uniform(),
                   .gamma_ms = 0.0003 * rng.uniform(),
                   .ttft_offset_ms = rng.below(2) == 0 ? 0 : 20 * rng.uniform()};
  s.batch = 1 + static_cast<int>(std::exp2(8 * rng.uniform()));
  return s;
}

CalibratedQueue queue_of(const Drawn& s) {
  return {s.demand, s.performance, s.batch};
}

/// ∫ P(x > t) dt, on a grid that is finer where t is small.
template <class Above>
double mean_of(const Above& above, double scale_ms) {
  double sum = 0, before = 1, at = 0;
  for (int i = 1; i <= 4000; ++i) {
    const double x = i / 400.0, ms = scale_ms * x * x, now = above(ms);
    sum += (before + now) / 2 * (ms - at);
    before = now;
    at = ms;
  }
  return sum;
}

TEST(Latencies, HaveTheMeanThatTheQueueHas) {
  Rng rng(3);
  for (int i = 0; i < 200; ++i) {
    const Drawn s = drawn_replica(rng);
    const CalibratedQueue queue = queue_of(s);
    const double rate = (0.05 + 0.9 * rng.uniform()) * queue.service_rate(s.batch);
    const Operation o = queue.at(rate);
    const Latencies latencies(queue, rate);
    const double mean = mean_of([&](double ms) { return latencies.ttft_above(ms); }, o.ttft_ms);
    EXPECT_NEAR(mean / o.ttft_ms, 1, 0.04) << i;  // a gamma distribution's tail is approximate
  }
}

TEST(Latencies, PercentilesAreInOrderAndWhereTheTailSays) {
  Rng rng(4);
  for (int i = 0; i < 500; ++i) {
    const Drawn s = drawn_replica(rng);
    const CalibratedQueue queue = queue_of(s);
    const double rate = (0.01 + 1.3 * rng.uniform()) * queue.service_rate(s.batch);
    const Latencies latencies(queue, rate);
    const Percentiles found = latencies.percentiles();
    for (const auto* of : {&found.ttft_ms, &found.itl_ms})
      for (std::size_t p = 1; p < of->size(); ++p) EXPECT_LE((*of)[p - 1], (*of)[p]) << i;
    for (std::size_t p = 0; p < kPercentiles.size(); ++p) {
      const double later = 1 - kPercentiles[p];
      EXPECT_LE(latencies.ttft_above(found.ttft_ms[p]), later + 1e-9) << i;
      EXPECT_GE(latencies.ttft_above(found.ttft_ms[p] * 0.998), later - 1e-9) << i;
      EXPECT_LE(latencies.itl_above(found.itl_ms[p]), later + 1e-9) << i;
      EXPECT_GE(latencies.itl_above(found.itl_ms[p] * 0.998), later - 1e-9) << i;
    }
    const Operation o = queue.at(rate);
    EXPECT_GT(found.ttft_ms[3], o.ttft_ms - o.wait_ms) << i;  // fewer than 1 % may wait
    EXPECT_GT(found.itl_ms[3], s.performance.alpha_ms) << i;
  }
}

TEST(Latencies, GrowWithTheRate) {
  Rng rng(5);
  for (int i = 0; i < 200; ++i) {
    const Drawn s = drawn_replica(rng);
    const CalibratedQueue queue = queue_of(s);
    Percentiles before;
    for (double part = 0.02; part < 1; part += 0.03) {
      const Percentiles now = Latencies(queue, part * queue.service_rate(s.batch)).percentiles();
      for (std::size_t p = 0; p < kPercentiles.size(); ++p) {
        // The groups are few, and end where little is left. Of ITL, more dispersed prompts leave
        // more steps without any.
        EXPECT_GE(now.ttft_ms[p], 0.99 * before.ttft_ms[p]) << i << " " << part << " " << p;
        EXPECT_GE(now.itl_ms[p], 0.9 * before.itl_ms[p]) << i << " " << part << " " << p;
      }
      before = now;
    }
  }
}

/// One request at a time, of equal lengths: nothing but the wait varies, whose mean Pollaczek and
/// Khinchin have for any service.
TEST(Latencies, OfOneRequestAtATimeAreTheWaitAndTheStep) {
  Drawn s;
  s.demand = {.in_tokens = 100, .out_tokens = 50, .max_queue = 10'000, .target = {}};
  s.performance = {.alpha_ms = 10, .beta_ms = 0.1, .gamma_ms = 0};
  const CalibratedQueue queue = queue_of(s);
  const double service_ms = 50 * 10 + 10 + 4.9, rate = 0.6 / service_ms;
  EXPECT_NEAR(queue.service_rate(1), 1 / service_ms, 1e-12);
  EXPECT_NEAR(queue.at(rate).wait_ms, 0.6 * service_ms / (2 * 0.4), 1e-6 * service_ms);
  const Latencies latencies(queue, rate);
  EXPECT_NEAR(latencies.ttft_above(19), 1, 1e-9);
  EXPECT_NEAR(latencies.ttft_above(21), 0.6, 0.01);  // those who wait
  const double itl_ms = latencies.percentiles().itl_ms[1];
  EXPECT_NEAR(itl_ms, 10.1, 0.2);
}

double one_of(Rng& rng, std::initializer_list<double> values) {
  return *(values.begin() + rng.below(values.size()));
}

/// What check() lets through, sized for targets of any size: no figure is infinite or no number.
TEST(Latencies, AreFiniteAtExtremes) {
  Rng rng(6);
  int served = 0;
  for (int i = 0; i < 2000; ++i) {
    Demand d;
    d.in_tokens = one_of(rng, {0, 1, 1000, 1e5, 1e7});
    d.out_tokens = one_of(rng, {0, 0.5, 1, 2, 100, 1e7}) + (d.in_tokens == 0 ? 1 : 0);
    d.max_batch = static_cast<int>(one_of(rng, {0, 1, 7, 1000}));
    d.max_queue = static_cast<int>(one_of(rng, {0, 1, 1e4}));
    d.in_cv = one_of(rng, {0, 1, 20}), d.out_cv = one_of(rng, {0, 1, 20});
    d.arrival_cv = one_of(rng, {0, 1, 20});
    for (auto* of : {&d.target.percentiles.ttft_ms, &d.target.percentiles.itl_ms})
      for (double& ms : *of) ms = one_of(rng, {0, 0, 0, 100, 1e12});
    Performance p;
    p.alpha_ms = one_of(rng, {0, 1e-9, 30, 1e9}), p.beta_ms = one_of(rng, {0, 1e-9, 0.05, 1e9});
    p.gamma_ms = one_of(rng, {0, 1e-4, 1e9}), p.beta_prefill_ms = one_of(rng, {0, 1e-9, 1e9});
    p.form = rng.below(2) == 0 ? StepForm::sum : StepForm::max;
    p.max_batch = 64, p.at_tokens = static_cast<int>(one_of(rng, {0, 1024, 1e7}));
    const Sizing sizing = size_replica(d, p, QueueModel::calibrated);
    if (sizing.refusal != Refusal::none) continue;
    ++served;
    for (const double part : {1e-3, 0.5, 1.0, 2.0, 1e3}) {
      const double rate = part * sizing.rate;
      ASSERT_TRUE(std::isfinite(rate) && rate > 0) << i;
      const Operation o = operation_at(d, p, sizing.batch, rate, QueueModel::calibrated);
      EXPECT_TRUE(std::isfinite(o.ttft_ms) && std::isfinite(o.itl_ms)) << i << " " << part;
      const Percentiles found = percentiles_at(d, p, sizing.batch, rate);
      for (std::size_t k = 0; k < kPercentiles.size(); ++k)
        EXPECT_TRUE(std::isfinite(found.ttft_ms[k]) && std::isfinite(found.itl_ms[k])) << i;
    }
  }
  EXPECT_GT(served, 300);
}

TEST(Latencies, OfPromptsAloneHaveNoTokensAfterTheFirst) {
  Drawn s;
  s.demand = {.in_tokens = 1000, .out_tokens = 0, .max_queue = 50, .target = {}};
  s.performance = {.alpha_ms = 10, .beta_ms = 0.02, .gamma_ms = 0};
  s.batch = 8;
  const CalibratedQueue queue = queue_of(s);
  const Percentiles found = Latencies(queue, 0.5 * queue.service_rate(8)).percentiles();
  for (const double itl_ms : found.itl_ms) EXPECT_EQ(itl_ms, 0);
  EXPECT_GT(found.ttft_ms[0], 30);
}

}  // namespace
}  // namespace berth::fleet
