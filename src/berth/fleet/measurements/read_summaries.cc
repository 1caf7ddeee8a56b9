// Reports that have one number for each fact, found by their paths: the summaries of llmperf's
// token_benchmark_ray.py and the reports of `trtllm-bench throughput`. bench/fit_formats.md has the
// sources.
#include <algorithm>
#include <array>

#include "berth/fleet/measurements/benchmark_formats.h"

namespace berth::fleet {
namespace {

enum class SummaryFact : std::uint8_t {
  rate,         // requests a second
  requests,     // completed
  errors,       // failed
  duration,     // s
  concurrency,  // mean number of requests in parallel
  in_tokens,
  in_deviation,
  out_tokens,
  out_deviation,
  ttft,     // ms, as the following
  itl,      // between two tokens, without the first
  latency,  // of a whole request
  count,    // of the facts
};
constexpr std::size_t kFacts = static_cast<std::size_t>(SummaryFact::count);

struct Source {
  std::string_view path;  // "": the format does not have it
  double scale = 1;
};

struct SummaryFormat {
  std::string_view tool;
  std::array<std::string_view, 2> marks;  // paths by which the format is known
  std::string_view model, accelerator{}, accelerators{}, max_concurrency{};
  std::array<Source, kFacts> facts;  // in the order of SummaryFact
  std::string_view streaming{};      // what to do where times of tokens are missing
};

constexpr double kPerMinute = 1.0 / 60;

// inter_token_latency_s counts the time to the first token, too, so that it is not read: the time
// between two tokens follows from the latency.
constexpr SummaryFormat kLlmperf{.tool = "llmperf",
                                 .marks = {"results_ttft_s_mean", "num_concurrent_requests"},
                                 .model = "model",
                                 .max_concurrency = "num_concurrent_requests",
                                 .facts = {{{"results_num_completed_requests_per_min", kPerMinute},
                                            {"results_num_completed_requests"},
                                            {"results_number_errors"},
                                            {},
                                            {},
                                            {"results_number_input_tokens_mean"},
                                            {"results_number_input_tokens_stddev"},
                                            {"results_number_output_tokens_mean"},
                                            {"results_number_output_tokens_stddev"},
                                            {"results_ttft_s_mean", kSecondMs},
                                            {},
                                            {"results_end_to_end_latency_s_mean", kSecondMs}}}};

// All requests are sent up to a concurrency that the report does not have.
constexpr SummaryFormat kTrtllm{.tool = "trtllm-bench",
                                .marks = {"request_info.num_requests", "performance"},
                                .model = "engine.model",
                                .accelerator = "machine.name",
                                .accelerators = "world_info.world_size",
                                .facts = {{{"performance.request_throughput_req_s"},
                                           {"request_info.num_requests"},
                                           {},
                                           {"performance.total_latency_ms", 1 / kSecondMs},
                                           {"request_info.avg_num_concurrent_requests"},
                                           {"request_info.avg_input_length"},
                                           {},
                                           {"request_info.avg_output_length"},
                                           {},
                                           {"streaming_metrics.avg_ttft_ms"},
                                           {"streaming_metrics.avg_tpot_ms"},
                                           {"performance.avg_request_latency_ms"}}},
                                .streaming = "run trtllm-bench with --streaming"};

class SummaryFacts {
 public:
  static Result<SummaryFacts> read(const JsonPlace& document, const SummaryFormat& format) {
    SummaryFacts facts;
    for (std::size_t i = 0; i < kFacts; ++i) {
      const auto [path, scale] = format.facts.at(i);
      const auto at = path.empty() ? std::nullopt : document.find(path);
      if (!at) continue;
      BERTH_ASSIGN(const double value, number_within(*at, 0, kMostMs));
      facts.values_.at(i) = scale * value;
    }
    return facts;
  }
  std::optional<double> operator[](SummaryFact fact) const {
    return values_.at(static_cast<std::size_t>(fact));
  }
  MeasuredFigures length(SummaryFact mean, SummaryFact deviation) const {
    MeasuredFigures figures{.mean = (*this)[mean].value_or(0)};
    if (const auto spread = (*this)[deviation])
      figures.square = figures.mean * figures.mean + *spread * *spread;
    return figures;
  }

 private:
  std::array<std::optional<double>, kFacts> values_;
};

/// Returns the mean time between two tokens of all requests together: that which the report has,
/// or what the latency leaves for the tokens after the first.
double itl_of(const SummaryFacts& facts, double out_tokens) {
  const auto latency = facts[SummaryFact::latency], ttft = facts[SummaryFact::ttft];
  if (latency && ttft && *latency > *ttft && out_tokens > 1)
    return (*latency - *ttft) / (out_tokens - 1);
  return facts[SummaryFact::itl].value_or(0);
}

Result<BenchmarkFile> read_report(const std::string& name, const JsonPlace& document,
                                  const SummaryFormat& format) {
  BERTH_ASSIGN(const SummaryFacts facts, SummaryFacts::read(document, format));
  for (const SummaryFact fact :
       {SummaryFact::rate, SummaryFact::in_tokens, SummaryFact::out_tokens, SummaryFact::ttft})
    if (!facts[fact]) {
      const auto path = format.facts.at(static_cast<std::size_t>(fact)).path;
      const bool streamed = fact == SummaryFact::ttft && !format.streaming.empty();
      return document.error(fmt::format("there is no '{}'{}{}", path, streamed ? "; " : "",
                                        streamed ? format.streaming : ""));
    }
  OperatingPoint point;
  point.name = name;
  point.rate_per_s = *facts[SummaryFact::rate];
  point.requests = facts[SummaryFact::requests].transform(whole_count);
  point.errors = facts[SummaryFact::errors].transform(whole_count);
  point.in_tokens = facts.length(SummaryFact::in_tokens, SummaryFact::in_deviation);
  point.out_tokens = facts.length(SummaryFact::out_tokens, SummaryFact::out_deviation);
  point.ttft_ms.mean = *facts[SummaryFact::ttft];
  point.itl_ms.mean = itl_of(facts, point.out_tokens.mean);
  const double requests = facts[SummaryFact::requests].value_or(0);
  const double counted_s = point.rate_per_s > 0 ? requests / point.rate_per_s : 0;
  point.duration_s = facts[SummaryFact::duration].value_or(counted_s);
  const double latency_ms = facts[SummaryFact::latency].value_or(0);
  point.concurrency =
      facts[SummaryFact::concurrency].value_or(point.rate_per_s * latency_ms / kSecondMs);
  point.max_concurrency = closed_loop_of(point.concurrency);
  if (const auto loop = document.find(format.max_concurrency)) {
    BERTH_ASSIGN(point.max_concurrency, number_within(*loop, 1, kMostPointRequests));
  }
  Measured measured;
  const auto text_at = [&](std::string_view path) {
    const auto at = path.empty() ? std::nullopt : document.find(path);
    return at && at->is_text() ? at->text() : Result<std::string>("");
  };
  BERTH_ASSIGN(measured.model, text_at(format.model));
  BERTH_ASSIGN(measured.accelerator, text_at(format.accelerator));
  if (const auto count = document.find(format.accelerators)) {
    constexpr double kMost = 100'000;
    BERTH_ASSIGN(const double accelerators, number_within(*count, 1, kMost));
    measured.accelerators = static_cast<int>(accelerators);
  }
  measured.points.push_back(std::move(point));
  BenchmarkFile file{.tool = format.tool, .detail = Detail::summary};
  file.measured.push_back(std::move(measured));
  return file;
}

bool has_marks(const JsonPlace& document, const SummaryFormat& format) {
  return std::ranges::all_of(format.marks,
                             [&](auto path) { return document.find(path).has_value(); });
}

}  // namespace

bool is_llmperf(const JsonPlace& document) {
  return has_marks(document, kLlmperf);
}

Result<BenchmarkFile> read_llmperf(const std::string& name, const JsonPlace& document) {
  return read_report(name, document, kLlmperf);
}

bool is_trtllm(const JsonPlace& document) {
  return has_marks(document, kTrtllm);
}

Result<BenchmarkFile> read_trtllm(const std::string& name, const JsonPlace& document) {
  return read_report(name, document, kTrtllm);
}

}  // namespace berth::fleet
