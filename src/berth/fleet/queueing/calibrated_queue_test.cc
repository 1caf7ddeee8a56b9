#include "berth/fleet/queueing/calibrated_queue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "berth/base/rng.h"

namespace berth::fleet {
namespace {

const Performance kCard{.alpha_ms = 8, .beta_ms = 0.04, .gamma_ms = 0.00006};

Demand demand_for(double in_tokens, double out_tokens, int queue = 1000) {
  return {.in_tokens = in_tokens, .out_tokens = out_tokens, .max_queue = queue, .target = {}};
}

/// The chain of the work that is told, state by state.
struct Chain {
  double in_service = 0, waiting = 0, loss = 0, alone = 0, waits = 0;
};
Chain chain_of(double fixed_ms, double each_ms, int batch, int queue, double rate) {
  std::vector<double> weights{1};
  for (int k = 1; k <= batch + queue; ++k) {
    const int b = std::min(k, batch);
    weights.push_back(weights.back() * rate * (fixed_ms + b * each_ms) / b);
  }
  double total = 0;
  for (const double w : weights) total += w;
  Chain c;
  for (int k = 0; k <= batch + queue; ++k) {
    const double p = weights[static_cast<std::size_t>(k)] / total;
    c.in_service += std::min(k, batch) * p;
    c.waiting += std::max(k - batch, 0) * p;
    c.waits += k >= batch && k < batch + queue ? p : 0;
  }
  c.alone = 1 / total;
  c.loss = weights.back() / total;
  return c;
}

TEST(CalibratedQueue, CountsTheSquareOfTheLengths) {
  Demand demand = demand_for(600, 200);
  const auto capacity = [&] { return CalibratedQueue(demand, kCard, 64).service_rate(64); };
  const auto by_hand = [&](double square) {
    const double work =
        0.04 * 600 + 0.00006 * 600 + 0.04 * 199 + 0.00006 * (600.0 * 199 + (square - 200) / 2);
    return 64 / (200 * 8 + 64 * work);
  };
  EXPECT_NEAR(capacity() / by_hand(200.0 * 200), 1, 1e-12);
  demand.out_cv = 1.5;
  EXPECT_NEAR(capacity() / by_hand(200.0 * 200 * 3.25), 1, 1e-12);
}

/// Without attention and with equal lengths nothing but the chain and the gated queue is left.
TEST(CalibratedQueue, IsTheChainAndTheGatedQueue) {
  const Performance card{.alpha_ms = 10, .beta_ms = 0.05, .gamma_ms = 0};
  for (const int batch : {1, 2, 7, 40})
    for (const double part : {0.05, 0.4, 0.8, 0.97}) {
      const Demand demand = demand_for(400, 101, 30);
      const CalibratedQueue queue(demand, card, batch);
      const double rate = part * queue.service_rate(batch);
      const Operation o = queue.at(rate);
      const Chain c = chain_of(101 * 10, 20 + 5, batch, 30, rate);
      EXPECT_NEAR(o.loss, c.loss, 1e-9);
      EXPECT_NEAR(o.in_service, c.in_service, 1e-8 * batch);
      const double served = rate * (1 - c.loss), steps = 101;
      EXPECT_NEAR(o.service_ms, c.in_service / served, 1e-6);
      const double slope = (batch - 1) * (std::sqrt(4 + 5.0 * batch) - 2) / (16.0 * batch);
      const double factor = std::min(1.0, (1 + (1 - part) * slope / part) / 2);
      EXPECT_NEAR(o.wait_ms, factor * c.waiting / served, 1e-5 * (1 + o.wait_ms));
      const double r = served * 20;
      const auto prefill = [&](double others) {
        const double step = 10 + 0.05 * others * 100 / steps;
        const double mean = step / (1 - r), variance = served * 400 * mean / (1 - r * r);
        return step + 20 + (0.5 + r) * (variance + mean * mean) / mean;
      };
      const double some = 1 - c.loss - c.alone - c.waits;
      const double others = some > 1e-9 ? (c.in_service - batch * (c.waits + c.loss)) / some : 0;
      const double expected =
          (c.alone * 30 + some * prefill(others) + c.waits * prefill(batch - 1)) / (1 - c.loss);
      EXPECT_NEAR(o.prefill_ms / expected, 1, 1e-6) << batch << " " << part;
      EXPECT_NEAR(o.itl_ms, std::max(10.0, (o.service_ms - 20) / steps), 1e-9);
      EXPECT_NEAR(o.ttft_ms, o.wait_ms + o.prefill_ms, 1e-9);
    }
}

Demand drawn_demand(Rng& rng) {
  Demand demand =
      demand_for(std::floor(std::exp2(14 * rng.uniform())),
                 std::floor(std::exp2(10 * rng.uniform())), static_cast<int>(rng.below(300)));
  demand.in_cv = rng.below(2) == 0 ? 0 : 2 * rng.uniform();
  demand.out_cv = rng.below(2) == 0 ? 0 : 2 * rng.uniform();
  demand.arrival_cv = rng.below(2) == 0 ? 1 : 3 * rng.uniform();
  return demand;
}

Performance drawn_card(Rng& rng) {
  return {.alpha_ms = 1 + 20 * rng.uniform(),
          .beta_ms = 0.05 * rng.uniform(),
          .gamma_ms = 0.0003 * rng.uniform(),
          .beta_prefill_ms = rng.below(2) == 0 ? 0 : 0.05 * rng.uniform(),
          .ttft_offset_ms = rng.below(2) == 0 ? 0 : 10 * rng.uniform(),
          .form = rng.below(2) == 0 ? StepForm::sum : StepForm::max};
}

TEST(CalibratedQueue, GrowthIsTheDerivative) {
  Rng rng(7);
  for (int i = 0; i < 2000; ++i) {
    const Demand demand = drawn_demand(rng);
    const CalibratedQueue queue(demand, drawn_card(rng),
                                1 + static_cast<int>(std::exp2(9 * rng.uniform())));
    const double rate = (0.02 + 0.93 * rng.uniform()) * queue.service_rate(queue.batch());
    const double h = 1e-5;
    Growth growth;
    const Operation at = queue.at(rate, &growth);
    const Operation less = queue.at(rate * std::exp(-h)), more = queue.at(rate * std::exp(h));
    const auto slope = [&](double Operation::* of) { return (more.*of - less.*of) / (2 * h); };
    const double little = 1e-5 * at.response_ms;
    EXPECT_NEAR(growth.throughput, slope(&Operation::throughput), 1e-3 * at.throughput) << i;
    EXPECT_NEAR(growth.wait_ms, slope(&Operation::wait_ms),
                little + 1e-3 * std::abs(growth.wait_ms))
        << i;
    EXPECT_NEAR(growth.itl_ms, slope(&Operation::itl_ms), little + 1e-3 * std::abs(growth.itl_ms))
        << i;
    EXPECT_NEAR(growth.ttft_ms, slope(&Operation::ttft_ms),
                little + 1e-3 * std::abs(growth.ttft_ms))
        << i;
  }
}

TEST(CalibratedQueue, MoreLoadIsNeverBetter) {
  Rng rng(8);
  for (int i = 0; i < 2000; ++i) {
    const Demand demand = drawn_demand(rng);
    const CalibratedQueue queue(demand, drawn_card(rng),
                                1 + static_cast<int>(std::exp2(9 * rng.uniform())));
    Operation before;
    for (double part = 0.02; part < 1; part += 0.02) {
      const Operation o = queue.at(part * queue.service_rate(queue.batch()));
      EXPECT_GE(o.ttft_ms, before.ttft_ms * (1 - 1e-9)) << i << " " << part;
      EXPECT_GE(o.itl_ms, before.itl_ms * (1 - 1e-9)) << i << " " << part;
      EXPECT_GE(o.loss, before.loss * (1 - 1e-9)) << i << " " << part;
      EXPECT_GE(o.throughput, before.throughput) << i << " " << part;
      before = o;
    }
  }
}

TEST(CalibratedQueue, VariationCostsCapacityOrTime) {
  Rng rng(9);
  for (int i = 0; i < 500; ++i) {
    const Demand plain = demand_for(std::floor(std::exp2(12 * rng.uniform())),
                                    std::floor(1 + std::exp2(9 * rng.uniform())));
    Demand varied = plain;
    varied.in_cv = rng.uniform(), varied.out_cv = rng.uniform();
    Performance card = drawn_card(rng);
    card.form = StepForm::sum;  // of the other, long prompts hide the steps that short ones leave
    const int batch = 1 + static_cast<int>(rng.below(100));
    const CalibratedQueue a(plain, card, batch), b(varied, card, batch);
    EXPECT_LE(b.service_rate(batch), a.service_rate(batch) * (1 + 1e-12)) << i;
    const double rate = 0.9 * b.service_rate(batch);
    EXPECT_GE(b.at(rate).ttft_ms, a.at(rate).ttft_ms * (1 - 1e-9)) << i;
    Demand bursts = varied;
    bursts.arrival_cv = 2;
    EXPECT_GE(CalibratedQueue(bursts, card, batch).at(rate).ttft_ms, b.at(rate).ttft_ms) << i;
  }
}

/// The work of a request, as sums over the bins of both histograms.
TEST(CalibratedQueue, CountsAHistogramBinByBin) {
  using Bins = std::vector<LengthHistogram::Bin>;
  Rng rng(10);
  for (int i = 0; i < 100; ++i) {
    const auto drawn = [&](double most) {
      Bins bins;
      for (double tokens = 1; tokens < most; tokens += 1 + std::floor(most / 4 * rng.uniform()))
        bins.push_back({tokens, rng.uniform()});
      return *LengthHistogram::of(bins);
    };
    Demand demand = demand_for(0, 0);
    demand.in_histogram = drawn(60'000), demand.out_histogram = drawn(700);
    const double stretch = i % 2 == 0 ? 1 : 0.5 + rng.uniform();
    demand.in_tokens = demand.in_histogram.mean() * stretch;
    demand.out_tokens = demand.out_histogram.mean();
    demand.in_cv = demand.out_cv = 3;  // which is not looked at
    const double n = demand.in_tokens, m = demand.out_tokens;
    double chunks = 0, chunks_by_token = 0, square = 0, weights = 0;
    for (const auto& [tokens, weight] : demand.in_histogram.bins()) {
      const double length = tokens * stretch, pieces = std::ceil(length / 8192);
      weights += weight, chunks += weight * pieces, chunks_by_token += weight * pieces * length;
    }
    chunks /= weights, chunks_by_token /= weights * n;
    weights = 0;
    for (const auto& [tokens, weight] : demand.out_histogram.bins())
      weights += weight, square += weight * tokens * tokens;
    square /= weights;
    const double work = 0.04 * n + 0.00006 * n * (chunks_by_token + 1) / 2 + 0.04 * (m - 1) +
                        0.00006 * (n * (m - 1) + (square - m) / 2);
    const CalibratedQueue queue(demand, kCard, 1);
    EXPECT_NEAR(queue.service_rate(1) * ((chunks + m - 1) * 8 + work), 1, 1e-9) << i;
    EXPECT_NEAR(queue.work().service_variation, (square - m * m) / std::pow(chunks + m - 1, 2),
                1e-9);
    EXPECT_EQ(queue.work().prompt_variation, demand.in_histogram.cv() * demand.in_histogram.cv());
  }
}

/// What others add to a step: E m³ / 3m is the mean square of what an answer has so far.
TEST(CalibratedQueue, TakesTheThirdMomentOfAHistogram) {
  Demand demand = demand_for(0.5, 0);
  demand.out_histogram = *LengthHistogram::of({{10, 9}, {1000, 1}});
  demand.out_tokens = demand.out_histogram.mean();
  const double m = 109, square = (9 * 1e2 + 1e6) / 10, third = (9 * 1e3 + 1e9) / 10;
  const double decoding = (m - 1) / m, other = 0.04 + 0.00006 * (0.5 + square / (2 * m));
  const double variance = third / (3 * m) - std::pow(square / (2 * m), 2);
  EXPECT_NEAR(CalibratedQueue(demand, kCard, 8).work().other_ms_square,
              0.00006 * 0.00006 * variance * decoding + other * other * decoding * (1 - decoding),
              1e-12);
}

TEST(CalibratedQueue, AHistogramOfOneLengthIsThatLength) {
  Rng rng(11);
  for (int i = 0; i < 500; ++i) {
    Demand fixed = drawn_demand(rng);
    fixed.in_cv = fixed.out_cv = 0;
    Demand one = fixed;
    one.in_histogram = *LengthHistogram::of({{fixed.in_tokens, 3}});
    one.out_histogram = *LengthHistogram::of({{fixed.out_tokens, 0.1}});
    const Performance card = drawn_card(rng);
    const int batch = 1 + static_cast<int>(std::exp2(9 * rng.uniform()));
    const CalibratedQueue a(fixed, card, batch), b(one, card, batch);
    const double rate = rng.uniform() * a.service_rate(batch);
    const Operation by_length = a.at(rate), by_bin = b.at(rate);
    EXPECT_EQ(by_length.ttft_ms, by_bin.ttft_ms) << i;
    EXPECT_EQ(by_length.itl_ms, by_bin.itl_ms) << i;
    EXPECT_EQ(by_length.wait_ms, by_bin.wait_ms) << i;
    EXPECT_EQ(a.work().other_ms_square, b.work().other_ms_square) << i;
  }
}

TEST(CalibratedQueue, LongerPromptsThanAStepTakesAreChunked) {
  // 20,000 tokens in three steps; the lengths that vary have as many tokens in more pieces.
  Demand demand = demand_for(20'000, 1);
  const Performance card{.alpha_ms = 10, .beta_ms = 0.01, .gamma_ms = 0};
  EXPECT_NEAR(CalibratedQueue(demand, card, 1).service_rate(1), 1 / (3 * 10 + 200.0), 1e-9);
  demand.in_cv = 1;  // exponential: E ⌈n / M⌉ = 1 / (1 − exp(−M / mean))
  const double chunks = 1 / (1 - std::exp(-8192.0 / 20'000));
  EXPECT_NEAR(CalibratedQueue(demand, card, 1).service_rate(1), 1 / (chunks * 10 + 200), 1e-7);
}

TEST(CalibratedQueue, PromptsHideBehindTheWeightsInTheFormMax) {
  const Demand demand = demand_for(100, 100);
  Performance card{.alpha_ms = 10, .beta_ms = 0.01, .gamma_ms = 0, .beta_prefill_ms = 0.05};
  const auto rate = [&](int batch) {
    return CalibratedQueue(demand, card, batch).service_rate(batch);
  };
  const double sum = rate(4);
  card.form = StepForm::max;  // 5 ms of a prompt in a step of 10: nearly all of it
  EXPECT_GT(rate(4), sum);
  EXPECT_NEAR(rate(1), 1 / (100 * 10 + 0.99), 1e-6);
  card.beta_prefill_ms = 0.5;  // 50 ms: 10 are hidden
  EXPECT_NEAR(rate(1), 1 / (100 * 10 + 40 + 0.99), 1e-6);
}

}  // namespace
}  // namespace berth::fleet
