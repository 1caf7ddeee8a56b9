#include "berth/fleet/queue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "berth/fleet/sizing.h"

namespace berth::fleet {
namespace {

// The published figures of the reference model.
const Queue::Parameters kPublished{128, 512, 12, 0.05, 0.0005, 48, 128};

TEST(Queue, KnownFigures) {
  const Operation o = Queue(kPublished).at(3e-3);
  EXPECT_NEAR(o.response_ms, 10348.37, 0.005);
  EXPECT_NEAR(o.wait_ms, 21.405, 0.0005);
  EXPECT_NEAR(o.in_service, 30.9809, 0.00005);
  EXPECT_NEAR(o.ttft_ms, 67.615, 0.0005);
  EXPECT_NEAR(o.itl_ms, 20.1189, 0.00005);
  EXPECT_NEAR(o.utilisation, 30.9809 / 48, 1e-6);
}

TEST(Queue, KnownRates) {
  const Queue queue(kPublished);
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
Operation by_definition(const Queue& queue, double rate) {
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

TEST(Queue, IsTheChainOfItsDefinition) {
  const Queue::Parameters all[] = {
      kPublished,
      {128, 512, 12, 0.05, 0.0005, 1, 0},  // one request, nobody waits
      {128, 512, 12, 0.05, 0.0005, 1, 5},
      {128, 0, 12, 0.05, 0.0005, 16, 16},  // prompts alone
      {0, 100, 12, 0.05, 0.0005, 16, 16},
      {2048, 64, 8, 0.02, 0.0001, 512, 64},  // prefill in up to 66 chunks
      {30000, 16, 8, 0.02, 0.0001, 64, 128},
      {512, 128, 0, 0.05, 0.0005, 256, 32},  // the rate does not grow with the batch
      {512, 128, 20, 0, 0, 2000, 32},        // it grows without end
      {64, 1, 7, 0.01, 0, 4000, 0},
  };
  for (const auto& parameters : all) {
    const Queue queue(parameters);
    for (const double part :
         {1e-6, 0.1, 0.5, 0.9, 0.999, 0.9999999, 1.0, 1.0000001, 1.01, 3.0, 100.0}) {
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

TEST(Queue, ChunksAreTheLeastThatServeTheBatch) {
  for (const auto& [n, m] :
       {std::pair{2048.0, 64.0}, {30000.0, 16.0}, {12000.0, 256.0}, {9000.0, 0.0}, {1e6, 3.0}}) {
    const Queue queue({n, m, 1, 1, 0, 1, 0});
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
