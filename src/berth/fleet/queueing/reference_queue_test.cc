#include "berth/fleet/queueing/reference_queue.h"

#include <gtest/gtest.h>

#include <cmath>

#include "berth/base/rng.h"
#include "berth/fleet/queueing/sizing.h"

namespace berth::fleet {
namespace {

// The published figures of the reference model.
const ReferenceQueue::Parameters kPublished{128, 512, 12, 0.05, 0.0005, 48, 128};

TEST(ReferenceQueue, KnownFigures) {
  const Operation o = ReferenceQueue(kPublished).at(3e-3);
  EXPECT_NEAR(o.response_ms, 10348.37, 0.005);
  EXPECT_NEAR(o.wait_ms, 21.405, 0.0005);
  EXPECT_NEAR(o.in_service, 30.9809, 0.00005);
  EXPECT_NEAR(o.ttft_ms, 67.615, 0.0005);
  EXPECT_NEAR(o.itl_ms, 20.1189, 0.00005);
  EXPECT_NEAR(o.utilisation, 30.9809 / 48, 1e-6);
}

TEST(ReferenceQueue, KnownRates) {
  const ReferenceQueue queue(kPublished);
  const Range range = reference_range(queue);
  const double itl = greatest_rate(queue, {{.itl_ms = 20}}, range.low, range.high).rate;
  const double ttft = greatest_rate(queue, {{.ttft_ms = 60}}, range.low, range.high).rate;
  EXPECT_NEAR(range.high * 1000, 3.86093, 0.000005);
  EXPECT_NEAR(ttft * 1000, 2.94946, 0.000005);
  EXPECT_NEAR(itl * 1000, 2.97198, 0.000005);
  const Rate both = greatest_rate(queue, {{.itl_ms = 20, .ttft_ms = 60}}, range.low, range.high);
  EXPECT_NEAR(both.rate, ttft, 1e-9 * ttft);
  EXPECT_EQ(both.binding, Binding::ttft);
  const Operation o = queue.at(both.rate);
  EXPECT_NEAR(o.wait_ms, 14.219, 0.0005);
  EXPECT_NEAR(o.ttft_ms, 60, 1e-4);
}

/// The chain as its definition reads, in logarithms.
Operation by_definition(const ReferenceQueue& queue, double rate) {
  const auto& p = queue.parameters();
  std::vector<double> log_weights{0};
  for (int k = 1; k <= p.batch + p.queue; ++k)
    log_weights.push_back(log_weights.back() + std::log(rate) -
                          std::log(queue.service_rate(std::min(k, p.batch))));
  const double most = *std::max_element(log_weights.begin(), log_weights.end());
  double total = 0, present = 0;
  Operation o;
  for (std::size_t k = 0; k < log_weights.size(); ++k) {
    const double weight = std::exp(log_weights[k] - most);
    total += weight;
    present += static_cast<double>(k) * weight;
    o.in_service += std::min<double>(static_cast<double>(k), p.batch) * weight;
  }
  o.in_service /= total;
  o.loss = std::exp(log_weights.back() - most) / total;
  o.throughput = rate * (1 - o.loss);
  o.response_ms = present / total / o.throughput;
  o.wait_ms = o.response_ms - o.in_service / o.throughput;
  return o;
}

const ReferenceQueue::Parameters kMany[] = {
    kPublished,
    {128, 512, 12, 0.05, 0.0005, 1, 0},  // one request, nobody waits
    {128, 512, 12, 0.05, 0.0005, 1, 5},
    {128, 0, 12, 0.05, 0.0005, 16, 16},  // prompts alone
    {0, 100, 12, 0.05, 0.0005, 16, 16},
    {2048, 64, 8, 0.02, 0.0001, 512, 64},  // prefill in up to 66 chunks
    {30000, 16, 8, 0.02, 0.0001, 64, 128},
    {512, 128, 0, 0.05, 0.0005, 256, 32},  // the rate does not grow with the batch
    {512, 128, 20, 0, 0, 2000, 32},        // it grows without end
    {512, 128, 20, 1e-9, 0, 500, 32},      // nearly so
    {512, 128, 3, 0.05, 0.0005, 100, 32},  // it grows by less than 16 times
    {64, 1, 7, 0.01, 0, 4000, 0},
};
/// Of the service rate at the batch.
constexpr double kLoads[] = {1e-6,  0.1,       0.51, 0.7,       0.8,  0.9, 0.95,
                             0.999, 0.9999999, 1.0,  1.0000001, 1.01, 3.0, 100.0};

TEST(ReferenceQueue, IsTheChainOfItsDefinition) {
  for (const auto& parameters : kMany) {
    const ReferenceQueue queue(parameters);
    for (const double part : kLoads) {
      const double rate = part * queue.service_rate(parameters.batch);
      const Operation is = queue.at(rate), should = by_definition(queue, rate);
      const auto label = fmt::format("n {} m {} N {} part {}", parameters.in_tokens,
                                     parameters.out_tokens, parameters.batch, part);
      EXPECT_NEAR(is.in_service / should.in_service, 1, 1e-8) << label;
      EXPECT_NEAR(is.throughput / should.throughput, 1, 1e-8) << label;
      EXPECT_NEAR(is.loss, should.loss, 1e-9) << label;
      EXPECT_NEAR(is.response_ms / should.response_ms, 1, 1e-8) << label;
      EXPECT_NEAR(is.wait_ms, should.wait_ms, 1e-7 * should.response_ms) << label;
      EXPECT_NEAR(is.wait_ms + is.service_ms, is.response_ms, 1e-9 * is.response_ms) << label;
    }
  }
}

TEST(ReferenceQueue, GrowthIsTheDerivative) {
  for (const auto& parameters : kMany) {
    const ReferenceQueue queue(parameters);
    for (const double part : kLoads) {
      const double rate = part * queue.service_rate(parameters.batch), h = 1e-5;
      Growth growth;
      const Operation at = queue.at(rate, &growth);
      const Operation less = queue.at(rate * std::exp(-h)), more = queue.at(rate * std::exp(h));
      if (queue.chunks(std::max(1.0, std::round(more.in_service))) !=
          queue.chunks(std::max(1.0, std::round(less.in_service))))
        continue;
      const auto slope = [&](double Operation::* of) { return (more.*of - less.*of) / (2 * h); };
      const auto label = fmt::format("n {} m {} N {} part {}", parameters.in_tokens,
                                     parameters.out_tokens, parameters.batch, part);
      // Of a sum of large parts that cancel, no more can be had.
      const double little = 1e-3 * std::abs(slope(&Operation::ttft_ms)) + 1e-6 * at.response_ms;
      EXPECT_NEAR(growth.throughput, slope(&Operation::throughput), 1e-3 * at.throughput) << label;
      EXPECT_NEAR(growth.loss, slope(&Operation::loss), 1e-3 * growth.loss + 1e-6 * at.loss + 1e-8)
          << label;
      EXPECT_NEAR(growth.wait_ms, slope(&Operation::wait_ms), little) << label;
      EXPECT_NEAR(growth.itl_ms, slope(&Operation::itl_ms), little) << label;
      EXPECT_NEAR(growth.ttft_ms, slope(&Operation::ttft_ms), little) << label;
    }
  }
}

TEST(ReferenceQueue, GreatestRateIsWhereALimitBeginsToBeBroken) {
  Rng rng(1);
  int by[7] = {}, chunked = 0;
  for (int i = 0; i < 20000; ++i) {
    const ReferenceQueue::Parameters parameters{
        .in_tokens = std::floor(std::exp2(14 * rng.uniform())),
        .out_tokens = std::floor(std::exp2(9 * rng.uniform())),
        .alpha_ms = 20 * rng.uniform(),
        .beta_ms = 0.05 * rng.uniform(),
        .gamma_ms = 0.0005 * rng.uniform(),
        .batch = 1 + static_cast<int>(std::exp2(8 * rng.uniform())),
        .queue = static_cast<int>(rng.below(100))};
    const ReferenceQueue queue(parameters);
    const Range range = reference_range(queue);
    const Operation idle = queue.at(range.low);
    chunked += queue.chunks(parameters.batch) > 1 ? 1 : 0;
    const Limits limits{
        {.itl_ms = rng.below(4) == 0 ? 0 : idle.itl_ms * (0.9 + 3 * rng.uniform()),
         .ttft_ms = rng.below(4) == 0 ? 0 : idle.ttft_ms * (0.9 + std::exp2(6 * rng.uniform())),
         .tps = 0},
        rng.below(2) == 0 ? 1 : 0.01};
    const auto broken = [&](double rate) {
      const Operation o = queue.at(rate);
      return (limits.target.itl_ms > 0 && o.itl_ms > limits.target.itl_ms) ||
             (limits.target.ttft_ms > 0 && o.ttft_ms > limits.target.ttft_ms) ||
             o.loss > limits.most_loss;
    };
    const Rate found = greatest_rate(queue, limits, range.low, range.high);
    ++by[static_cast<int>(found.binding)];
    if (found.rate == 0) {
      EXPECT_TRUE(broken(range.low)) << i;
      continue;
    }
    EXPECT_FALSE(broken(found.rate)) << i;
    EXPECT_NEAR(found.throughput / queue.at(found.rate).throughput, 1, 2e-8) << i;
    EXPECT_TRUE(found.rate == range.high || broken(found.rate * (1 + 2e-8))) << i;
  }
  EXPECT_GT(chunked, 3000);
  for (const Binding binding : {Binding::itl, Binding::ttft, Binding::loss, Binding::throughput})
    EXPECT_GT(by[static_cast<int>(binding)], 100) << name(binding);
}

TEST(ReferenceQueue, ChunksAreTheLeastThatServeTheBatch) {
  for (const auto& [n, m] :
       {std::pair{2048.0, 64.0}, {30000.0, 16.0}, {12000.0, 256.0}, {9000.0, 0.0}, {1e6, 3.0}}) {
    const ReferenceQueue queue({n, m, 1, 1, 0, 1, 0});
    const auto serves = [&](double i) {
      return std::floor((i + m) * (kBatchTokens - n / i) / (n + m));
    };
    double chunks = 1;
    for (int batch = 1; batch <= 300; ++batch) {
      while (serves(chunks) < batch) ++chunks;
      ASSERT_EQ(queue.chunks(batch), chunks) << n << " " << m << " " << batch;
    }
  }
}

}  // namespace
}  // namespace berth::fleet
