#include "berth/fleet/measurements/benchmark_files.h"

#include <gtest/gtest.h>

#include <cmath>

namespace berth::fleet {
namespace {

const std::string kVllm =
    R"({"model_id":"org/a","num_prompts":3,"request_rate":"inf","max_concurrency":2,"duration":1.5,)"
    R"("completed":3,"total_input_tokens":60,"total_output_tokens":9,"request_throughput":2,)"
    R"("mean_ttft_ms":100,"p99_ttft_ms":120,"mean_itl_ms":50,"input_lens":[10,20,30],)"
    R"("output_lens":[3,3,3],"ttfts":[0.1,0.2,0.3],"itls":[[0.2,0.2],[0.3,0.3],[0.25,0.25]],)"
    R"("start_times":[7.0,7.0,7.5],"generated_texts":["\ud83d\ude00","",""]})";
const std::string kVllmSummary =
    R"({"model_id":"org/a","num_prompts":110,"request_rate":4.0,"max_concurrency":null,"duration":50,)"
    R"("completed":100,"total_input_tokens":20000,"total_output_tokens":10100,"mean_ttft_ms":60,)"
    R"("mean_itl_ms":20,"p99_itl_ms":31})";
const std::string kGuidellm =
    R"({"metadata":{"version":1},"args":{"model":"org/b"},"benchmarks":[{"config":{"strategy":)"
    R"({"type_":"concurrent","streams":2}},"duration":10,"scheduler_metrics":{"requests_made":)"
    R"({"successful":2,"errored":1}},"metrics":{"requests_per_second":{"successful":{"mean":0.2}},)"
    R"("request_concurrency":{"successful":{"mean":1.9}},"prompt_token_count":{"successful":)"
    R"({"mean":264,"variance":4}},"output_token_count":{"successful":{"mean":121}},)"
    R"("time_to_first_token_ms":{"successful":{"mean":85.4,"percentiles":{"p95":170}}},)"
    R"("inter_token_latency_ms":{"successful":{"mean":28.6}}},"requests":{"successful":[)"
    R"({"request_start_time":100.5,"prompt_tokens":262,"output_tokens":120,"time_to_first_token_ms":80,)"
    R"("inter_token_latency_ms":28},{"request_start_time":100,"prompt_tokens":266,"output_tokens":122,)"
    R"("time_to_first_token_ms":90,"inter_token_latency_ms":29}],"incomplete":[{"request_start_time":)"
    R"(103}]}}]})";
const std::string kAiperf =
    R"({"request_throughput":{"unit":"requests/sec","avg":4},"time_to_first_token":{"unit":"sec",)"
    R"("avg":0.085,"p95":0.17},"inter_token_latency":{"unit":"ms","avg":28.6},"request_latency":)"
    R"({"unit":"ms","avg":3500},"input_sequence_length":{"unit":"tokens","avg":264,"std":10},)"
    R"("output_sequence_length":{"unit":"tokens","avg":121},"request_count":{"unit":"requests",)"
    R"("avg":480},"error_request_count":{"unit":"requests","avg":2},"input_config":{"endpoint":)"
    R"({"model_names":["org/c"]},"loadgen":{"concurrency":14}}})";
const std::string kAiperfLine =
    R"({"metadata":{"request_start_ns":1000000000,"benchmark_phase":"profiling"},"metrics":)"
    R"({"input_sequence_length":{"value":550,"unit":"tokens"},"output_sequence_length":{"value":3,)"
    R"("unit":"tokens"},"time_to_first_token":{"value":255.9,"unit":"ms"},"inter_token_latency":)"
    R"({"value":5,"unit":"ms"},"inter_chunk_latency":{"value":[4.9,5.1],"unit":"ms"}},"error":null})";
const std::string kAiperfLines =
    R"({"metadata":{"request_start_ns":500000000,"benchmark_phase":"warmup"},"metrics":{}})"
    "\n" +
    kAiperfLine + "\n" +
    R"({"metadata":{"request_start_ns":1200000000},"metrics":{},"error":{"type":"x"}})"
    "\n" +
    R"({"metadata":{"request_start_ns":1300000000,"was_cancelled":true},"metrics":{}})"
    "\n";
const std::string kAiperfCsv =
    "Metric,avg,min,max\r\nTime to First Token (ms),\"1,085.40\",10,2000\r\n"
    "Inter Token Latency (ms),28.6,10,40\r\nInput Sequence Length (tokens),264,264,264\r\n"
    "Output Sequence Length (tokens),121,121,121\r\nRequest Latency (sec),3.5,1,4\r\n\r\n"
    "Metric,Value\r\nRequest Throughput (requests/sec),4\r\nRequest Count (count),480\r\n";
const std::string kGuidellmCsv =
    "Run Info,Timings,Server Throughput,Server Throughput,Token Metrics,Token Metrics,"
    "Time to First Token,Time to First Token,Inter Token Latency\n"
    "Model,Duration,Successful Requests/Sec,Successful Concurrency,Successful Input Tokens,"
    "Successful Output Tokens,Successful ms,Successful ms,Successful ms\n"
    ",Sec,Mean,Mean,Mean,Mean,Mean,Median,Mean\n"
    "\"a,\"\"b\"\"\",60,4.5,16.9,264,121,85.4,78,28.6\n";
const std::string kRows = "batch,prefill_tokens,context_tokens,ms\n4,0,1000,20.5\n0,512,512,60\n";
const std::string kSplitwise =
    "model,hardware,tensor_parallel,prompt_size,batch_size,token_size,prompt_time,token_time\n"
    "m,a100,2,512,4,128,200,50\nm,a100,2,4096,4,128,900,60\nm,h100,1,512,1,128,100,40\n";

const std::string kSamples[] = {kVllm,        kVllmSummary, kGuidellm,    kAiperf, kAiperfLine,
                                kAiperfLines, kAiperfCsv,   kGuidellmCsv, kRows,   kSplitwise};

BenchmarkFile read_good(const std::string& text) {
  auto file = read_benchmark_file("f", text);
  EXPECT_TRUE(file) << file.error().message;
  return file ? *std::move(file) : BenchmarkFile{};
}

OperatingPoint point_of(const std::string& text) {
  const auto file = read_good(text);
  EXPECT_EQ(file.measured.size(), 1U);
  return file.measured.at(0).points.at(0);
}

std::string refusal_of(const std::string& text) {
  const auto file = read_benchmark_file("f", text);
  return file ? "" : file.error().message;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(BenchmarkFiles, VllmWithItsRequests) {
  const auto file = read_good(kVllm);
  EXPECT_EQ(file.detail, Detail::requests);
  EXPECT_EQ(file.measured[0].model, "org/a");
  const auto& point = file.measured[0].points[0];
  EXPECT_EQ(point.requests, 3);
  EXPECT_EQ(point.max_concurrency, 2);
  ASSERT_EQ(point.timeline.size(), 3U);
  EXPECT_EQ(point.timeline[2].start_ms, 500);
  EXPECT_EQ(point.timeline[1].in_tokens, 20);
  EXPECT_NEAR(point.timeline[1].itl_ms, 300, 1e-9);
  EXPECT_NEAR(point.timeline[0].end_ms(), 500, 1e-3);
  EXPECT_NEAR(point.itl_ms.mean, 250, 1e-9);
  EXPECT_NEAR(point.in_tokens.square, (100 + 400 + 900) / 3.0, 1e-9);
  EXPECT_NEAR(point.concurrency, (500 + 800 + 800) / 1500.0, 1e-6);
}

TEST(BenchmarkFiles, VllmWithoutStartsIsRebuiltWhereItFitsTheDuration) {
  const std::string bare = replaced(kVllm, R"("start_times":[7.0,7.0,7.5],)", "");
  const auto rebuilt = point_of(replaced(bare, R"("duration":1.5)", R"("duration":1.3)"));
  ASSERT_EQ(rebuilt.timeline.size(), 3U);
  EXPECT_NEAR(rebuilt.timeline[2].start_ms, 500, 1e-3);  // the first of two has ended
  EXPECT_TRUE(point_of(replaced(bare, R"("duration":1.5)", R"("duration":5)")).timeline.empty());
  // A request that failed would have stood among the others.
  const std::string failed = replaced(bare, R"("num_prompts":3)", R"("num_prompts":4)");
  EXPECT_TRUE(point_of(failed).timeline.empty());
}

TEST(BenchmarkFiles, VllmDrawsItsPausesFromTheTwister) {
  // numpy.random.seed(0); numpy.random.exponential(1, 2) is 0.79587451, 1.25593076.
  std::string text = replaced(kVllm, R"("start_times":[7.0,7.0,7.5],)", "");
  text = replaced(text, R"("max_concurrency":2)", R"("max_concurrency":null)");
  text = replaced(text, R"("request_rate":"inf")", R"("request_rate":2)");
  const auto point = point_of(replaced(text, R"("duration":1.5)", R"("duration":1.83)"));
  ASSERT_EQ(point.timeline.size(), 3U);
  EXPECT_NEAR(point.timeline[1].start_ms, 1000 * 0.79587451 / 2, 1e-4);
  EXPECT_NEAR(point.timeline[2].start_ms, 1000 * (0.79587451 + 1.25593076) / 2, 1e-4);
}

TEST(BenchmarkFiles, VllmSummaryAndAppendedResults) {
  const auto point = point_of(kVllmSummary);
  EXPECT_EQ(point.errors, 10);
  EXPECT_EQ(point.rate_per_s, 2);
  EXPECT_EQ(*point.offered_per_s, 4);
  EXPECT_EQ(point.in_tokens.mean, 200);
  EXPECT_EQ(point.itl_ms.p99, 31);
  EXPECT_NEAR(point.concurrency, 2 * (0.06 + 100 * 0.02), 1e-9);
  EXPECT_FALSE(point.max_concurrency);
  const auto both = read_good(kVllmSummary + "\n" + kVllmSummary + "\n");
  EXPECT_EQ(both.measured.size(), 2U);
}

TEST(BenchmarkFiles, Guidellm) {
  const auto file = read_good(kGuidellm);
  EXPECT_EQ(file.measured[0].model, "org/b");
  const auto& point = file.measured[0].points[0];
  EXPECT_EQ(point.max_concurrency, 2);
  EXPECT_EQ(point.errors, 1);
  EXPECT_EQ(point.in_tokens.square, 264.0 * 264 + 4);
  EXPECT_EQ(point.ttft_ms.p95, 170);
  ASSERT_EQ(point.timeline.size(), 2U);
  EXPECT_EQ(point.timeline[0].in_tokens, 266);
  EXPECT_EQ(point.timeline[1].start_ms, 500);
  EXPECT_EQ(point.complete_until_ms, 3000);
  // A sample of the requests is no timeline.
  EXPECT_TRUE(
      point_of(replaced(kGuidellm, R"("successful":2,)", R"("successful":3,)")).timeline.empty());
  const std::string second = replaced(kGuidellm, R"("args":{"model":"org/b"})",
                                      R"("config":{"spec":{"backend":{"model":"org/d"}}})");
  EXPECT_EQ(read_good(second).measured[0].model, "org/d");
}

TEST(BenchmarkFiles, AiperfSummariesGoByTheirUnits) {
  const auto file = read_good(kAiperf);
  EXPECT_EQ(file.measured[0].model, "org/c");
  const auto& point = file.measured[0].points[0];
  EXPECT_NEAR(point.ttft_ms.mean, 85, 1e-9);
  EXPECT_NEAR(point.ttft_ms.p95, 170, 1e-9);
  EXPECT_EQ(point.in_tokens.square, 264.0 * 264 + 100);
  EXPECT_EQ(point.requests, 480);
  EXPECT_EQ(point.errors, 2);
  EXPECT_EQ(point.max_concurrency, 14);
  EXPECT_NEAR(point.concurrency, 14, 1e-9);
  const auto table = point_of(kAiperfCsv);
  EXPECT_NEAR(table.ttft_ms.mean, 1085.4, 1e-9);
  EXPECT_NEAR(table.concurrency, 14, 1e-9);
  EXPECT_EQ(table.requests, 480);
}

TEST(BenchmarkFiles, AiperfRequests) {
  const auto point = point_of(kAiperfLines);
  ASSERT_EQ(point.timeline.size(), 1U);
  EXPECT_EQ(point.errors, 1);
  EXPECT_EQ(point.timeline[0].gaps_ms.size(), 2U);
  EXPECT_EQ(point.timeline[0].in_tokens, 550);
  EXPECT_NEAR(point.complete_until_ms, 300, 1e-6);
}

TEST(BenchmarkFiles, GuidellmTable) {
  const auto point = point_of(kGuidellmCsv);
  EXPECT_EQ(point.rate_per_s, 4.5);
  EXPECT_EQ(point.concurrency, 16.9);
  EXPECT_EQ(point.ttft_ms.mean, 85.4);
  EXPECT_EQ(point.itl_ms.mean, 28.6);
  EXPECT_EQ(point.out_tokens.mean, 121);
  EXPECT_EQ(point.requests, 270);
}

TEST(BenchmarkFiles, TablesOfIterations) {
  const auto rows = read_good(kRows).measured.at(0).iterations;
  EXPECT_EQ(rows, (std::vector<Iteration>{{4, 0, 1000, 20.5}, {0, 512, 512, 60}}));
  const auto sets = read_good(kSplitwise);
  ASSERT_EQ(sets.measured.size(), 2U);
  EXPECT_EQ(sets.measured[0].accelerator, "a100-tp2");
  EXPECT_EQ(sets.measured[0].accelerators, 2);
  EXPECT_EQ(
      sets.measured[0].iterations,
      (std::vector<Iteration>{{0, 2048, 2048, 200}, {4, 0, 4 * 576, 50}, {4, 0, 4 * 4160, 60}}));
  EXPECT_EQ(sets.notes.size(), 1U);
}

TEST(BenchmarkFiles, WhatIsWrongIsNamed) {
  EXPECT_EQ(refusal_of(replaced(kVllm, "0.2,0.2", "0.2,null")),
            "f: itls[0][1]: expected a number, got null");
  EXPECT_EQ(refusal_of(replaced(kVllm, R"("ttfts":[0.1,)", R"("ttfts":[)")),
            "f: ttfts: expected 3 elements, as input_lens has, got 2");
  EXPECT_EQ(refusal_of(replaced(kVllm, R"("duration":1.5)", R"("duration":-1)")),
            "f: duration: expected a number from 0.001 to 1000000000, got -1");
  EXPECT_EQ(refusal_of(replaced(kVllmSummary, R"("mean_itl_ms":20,)", "")),
            "f: there is no 'mean_itl_ms'");
  EXPECT_EQ(
      refusal_of(replaced(kGuidellm, "28.6", "\"long\"")),
      "f: benchmarks[0].metrics.inter_token_latency_ms.successful.mean: expected a number, got "
      "\"long\"");
  EXPECT_EQ(refusal_of(replaced(kAiperf, "\"sec\"", "\"weeks\"")),
            "f: time_to_first_token.unit: expected ms, sec, tokens or requests/sec, got 'weeks'");
  EXPECT_EQ(refusal_of(replaced(kAiperfLines, "255.9", "\"x\"")),
            "f:2:1: metrics.time_to_first_token.value: expected a number, got \"x\"");
  EXPECT_EQ(refusal_of(replaced(kRows, "512,60", "512,-60")),
            "f:3:11: ms: expected a number from 1e-06 to 1000000000, got '-60'");
  EXPECT_EQ(refusal_of(replaced(kRows, "0,512,512,60", "0,512")),
            "f:3:3: expected 4 cells as in the head, got 2");
  EXPECT_EQ(refusal_of(replaced(kRows, "context_tokens", "contexts")),
            "f:1:1: expected a column 'context_tokens', got batch,prefill_tokens,contexts,ms");
  EXPECT_EQ(refusal_of(kRows + "\"1"), "f:4:1: a quote is not closed");
  EXPECT_EQ(refusal_of(replaced(kAiperfCsv, "28.6", "x")),
            "f:3:26: inter token latency: expected a number from 0 to 1000000000, got 'x'");
  EXPECT_TRUE(refusal_of("").starts_with("f: expected a result of guidellm")) << refusal_of("");
  EXPECT_TRUE(refusal_of("hello").ends_with("got 'hello'"));
  EXPECT_EQ(read_benchmark_file("f", "{\"a\":1}").error().kind, ErrorKind::not_found);
  EXPECT_EQ(read_benchmark_file("f", "{\"a\":").error().kind, ErrorKind::invalid);
}

TEST(BenchmarkFiles, ATableThatCanBeReadTwoWaysIsRefused) {
  EXPECT_EQ(refusal_of(replaced(kRows, "context_tokens,ms", "context_tokens,ms,MS")),
            "f:1:40: two columns 'MS'");
  EXPECT_EQ(refusal_of("batch,prefill_tokens,context_tokens,ms,,\n4,0,1000,20.5,,\n"), "");
  EXPECT_EQ(refusal_of(replaced(kRows, "1000,20.5", "1,000,20.5")),
            "f:2:11: expected 4 cells as in the head, got 5");
  EXPECT_EQ(refusal_of(replaced(kSplitwise, "128,200,50", "128,200,50,7")),
            "f:2:27: expected 8 cells as in the head, got 9");
  EXPECT_EQ(refusal_of(replaced(kSplitwise, "prompt_time,token_time", "prompt_time,token_size")),
            "f:1:78: two columns 'token_size'");
  EXPECT_EQ(refusal_of(replaced(kGuidellmCsv, "60,4.5", "60,4,5")),
            "f:4:39: expected 9 cells as in the head, got 10");
  EXPECT_EQ(refusal_of(replaced(kGuidellmCsv, "Median", "Mean")),
            "f:2:126: two columns 'Time to First Token, Successful ms, Mean'");
  EXPECT_EQ(refusal_of(replaced(kAiperfCsv, "28.6,10,40", "1,028.6,10,40")),
            "f:3:37: expected 4 cells as in the head, got 5");
  EXPECT_EQ(refusal_of(kAiperfCsv + "Request Throughput (requests/sec),5\n"),
            "f:11:1: two rows 'request throughput'");
}

TEST(BenchmarkFiles, ATableOfOnlyItsHeadSaysSo) {
  const auto head = [](const std::string& text) { return text.substr(0, text.find('\n') + 1); };
  for (const auto& table : {kRows, kSplitwise})
    EXPECT_EQ(refusal_of(head(table)), "f:1:1: expected rows below the head, got none");
  EXPECT_EQ(refusal_of(head(kAiperfCsv)), "f:1:1: expected a row 'time to first token', got none");
  EXPECT_EQ(refusal_of(kGuidellmCsv.substr(0, kGuidellmCsv.find("\"a,"))),
            "f:1:1: expected rows below the heads, got none");
}

TEST(BenchmarkFiles, PlacesAreThoseOfTheFile) {
  EXPECT_EQ(refusal_of("\xef\xbb\xbf\n \n" + replaced(kRows, "512,60", "512,-60")),
            "f:5:11: ms: expected a number from 1e-06 to 1000000000, got '-60'");
  EXPECT_EQ(refusal_of(replaced(kSplitwise, "m,a100,2,512", "\"m\nm\",a100,2,x")),
            "f:3:11: prompt_size: expected a number from 0 to 1000000000, got 'x'");
  EXPECT_EQ(refusal_of("\n" + kVllmSummary + "\n\n" + replaced(kVllmSummary, "110", "\"x\"")),
            "f:4:1: num_prompts: expected a number, got \"x\"");
  EXPECT_TRUE(
      refusal_of(kVllmSummary + "\n{\"a\":1}\n").starts_with("f:2:1: expected a result of"));
  EXPECT_TRUE(refusal_of(kVllmSummary + "\n{\"a\":\n").starts_with("f:2:1: not JSON"));
  EXPECT_EQ(read_good(kVllmSummary + "\n" + kVllmSummary).measured[1].points[0].name, "f:2");
}

TEST(BenchmarkFiles, ACutFileIsReadOrRefusedWithItsName) {
  for (const std::string& sample : kSamples) {
    const auto whole = read_good(sample);
    std::size_t refused = 0;
    for (std::size_t size = 0; size < sample.size(); ++size) {
      const auto cut = read_benchmark_file("the file", std::string_view(sample).substr(0, size));
      refused += cut ? 0 : 1;
      if (cut) {
        EXPECT_LE(cut->measured.size(), whole.measured.size());
      } else {
        EXPECT_TRUE(cut.error().message.starts_with("the file:")) << cut.error().message;
      }
    }
    // JSON is whole or nothing, but for lines.
    const bool lines = sample == kAiperfLines || sample.find('{') == std::string::npos;
    EXPECT_TRUE(lines || refused == sample.size()) << sample;
    EXPECT_GT(refused, 10U);
  }
}

TEST(BenchmarkFiles, AnyByteMayBeAnother) {
  for (const std::string& sample : kSamples)
    for (std::size_t at = 0; at < sample.size(); ++at)
      for (const char byte : {'"', ',', '9', '\n', '\xff'}) {
        std::string text = sample;
        text[at] = byte;
        const auto file = read_benchmark_file("f", text);
        if (!file) {
          EXPECT_TRUE(file.error().message.starts_with("f:"));
          continue;
        }
        for (const auto& measured : file->measured)
          for (const auto& point : measured.points) {
            EXPECT_TRUE(std::isfinite(point.rate_per_s) && std::isfinite(point.itl_ms.mean));
            EXPECT_GE(point.requests.value_or(0), 0);
          }
      }
}

}  // namespace
}  // namespace berth::fleet
