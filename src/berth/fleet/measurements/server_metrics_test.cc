#include "berth/fleet/measurements/server_metrics.h"

#include <gtest/gtest.h>

#include "berth/base/text.h"

namespace berth::fleet {
namespace {

constexpr MetricWindows kWindows{.from_s = 1'700'000'000, .window_s = 60, .count = 3};

/// An answer with one series: a value for each window.
std::string answer(std::string_view engine, const std::vector<std::string>& values) {
  std::vector<std::string> samples;
  for (std::size_t i = 0; i < values.size(); ++i)
    samples.push_back(fmt::format(R"([{},"{}"])", 1'700'000'060 + 60 * i, values[i]));
  return fmt::format(
      R"({{"metric":{{"model_name":"m","instance":"h:80","engine":"{}"}},"values":[{}]}})", engine,
      join(samples, ","));
}

std::string whole(const std::vector<std::string>& series) {
  return fmt::format(R"({{"status":"success","data":{{"resultType":"matrix","result":[{}]}}}})",
                     join(series, ","));
}

std::vector<std::string> good_answers() {
  return {whole({answer("0", {"120", "0", "240"}), answer("1", {"60", "60", "60"})}),
          whole({answer("0", {"300", "NaN", "310"}), answer("1", {"200", "200", "200"})}),
          whole({answer("0", {"100", "NaN", "110"}), answer("1", {"50", "50", "50"})}),
          whole({answer("0", {"0.08", "NaN", "0.1"}), answer("1", {"0.06", "+Inf", "0.06"})}),
          whole({answer("0", {"0.02", "NaN", "0.03"}), answer("1", {"0.02", "0.02", "0.02"})}),
          whole({answer("0", {"4.5", "0", "9"})})};
}

TEST(ServerMetrics, EachServerAndWindowIsAPoint) {
  const auto read = read_metrics(kWindows, good_answers());
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 1U);
  EXPECT_EQ(read->at(0).model, "m");
  const auto& points = read->at(0).points;
  ASSERT_EQ(points.size(), 4U);  // a window of each had no requests, or no time
  EXPECT_EQ(points[0].name, "h:80/0 2023-11-14T22:13Z");
  EXPECT_EQ(points[1].name, "h:80/0 2023-11-14T22:15Z");
  EXPECT_EQ(points[0].requests, 120);
  EXPECT_EQ(points[0].rate_per_s, 2);
  EXPECT_EQ(points[0].concurrency, 4.5);
  EXPECT_EQ(points[0].in_tokens.mean, 300);
  EXPECT_EQ(points[0].out_tokens.mean, 100);
  EXPECT_EQ(points[0].ttft_ms.mean, 80);
  EXPECT_EQ(points[0].itl_ms.mean, 20);
  EXPECT_EQ(points[2].concurrency, 0);  // not told
  EXPECT_EQ(points[0].duration_s, 0);   // no end of the load is in it
}

TEST(ServerMetrics, ARangeIsAskedForEachFigure) {
  const auto queries = metric_queries(kWindows);
  ASSERT_EQ(queries.size(), good_answers().size());
  for (const auto& query : queries)
    EXPECT_TRUE(query.ends_with("&start=1700000060&end=1700000180&step=60")) << query;
  EXPECT_TRUE(queries[0].starts_with(
      "/api/v1/query_range?query=sum%20by%20%28model_name%2C%20instance%2C%20engine%29%20%28"
      "increase%28vllm%3Arequest_generation_tokens_count%5B60s%5D%29%29&"))
      << queries[0];
}

TEST(ServerMetrics, WhatIsNoAnswerIsRefused) {
  const auto refusal = [](std::string_view from, std::string_view to) {
    auto answers = good_answers();
    const auto at = answers[0].find(from);
    answers[0].replace(at, from.size(), to);
    const auto read = read_metrics(kWindows, answers);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(refusal(R"("data":)", R"("error":"no such function","data":)"),
            "it says: no such function");
  EXPECT_EQ(refusal(R"("data":)", R"("date":)"), "there is no 'data.result'");
  EXPECT_EQ(refusal("1700000060", "1800000060"),
            "data.result[0].values[0][0]: expected a time that was asked for");
  EXPECT_EQ(refusal(R"(,"120"])", "]"), "data.result[0].values[0]: expected a time and a value");
  EXPECT_EQ(refusal(R"("120")", "120"), "data.result[0].values[0][1]: expected text, got 120");
  EXPECT_TRUE(refusal("{", "").starts_with("not JSON"));
}

TEST(ServerMetrics, AnyByteMayBeAnotherThere) {
  const auto answers = good_answers();
  for (std::size_t at = 0; at < answers[0].size(); ++at)
    for (const char byte : {'"', ',', '9', '-', '\xff'}) {
      auto changed = answers;
      changed[0][at] = byte;
      const auto read = read_metrics(kWindows, changed);
      if (!read) continue;
      for (const auto& measured : *read)
        for (const auto& point : measured.points) EXPECT_GT(point.rate_per_s, 0);
    }
}

}  // namespace
}  // namespace berth::fleet
