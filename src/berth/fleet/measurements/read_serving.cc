// Results of vLLM's benchmark_serving.py and `vllm bench serve`, and of sglang.bench_serving, which
// descends from it: one flat object a run. The arrays are in seconds, all else in ms.
// bench/fit_formats.md has the sources.
#include <algorithm>
#include <cmath>

#include "berth/fleet/measurements/benchmark_formats.h"
#include "berth/fleet/measurements/request_starts.h"
#include "berth/fleet/measurements/streamed_tokens.h"

namespace berth::fleet {
namespace {

Result<double> milliseconds(const JsonPlace& at) {
  return number_within(at, 0, kMostMs);
}

Result<std::vector<double>> list_of(const JsonPlace& document, std::string_view key,
                                    std::size_t wanted) {
  BERTH_ASSIGN(const JsonPlace at, document.get(key));
  BERTH_ASSIGN(auto numbers, at.numbers(kMostPointRequests));
  if (wanted > 0 && numbers.size() != wanted)
    return at.error(
        fmt::format("expected {} elements, as input_lens has, got {}", wanted, numbers.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!(numbers[i] >= 0 && numbers[i] <= kMostMs))
      return at.error(fmt::format("element {}: expected a number from 0 to {}, got {}", i, kMostMs,
                                  numbers[i]));
  return numbers;
}

/// Returns the requests that succeeded; those that failed have no output.
Result<std::vector<RequestTimes>> requests_of(const JsonPlace& document) {
  BERTH_ASSIGN(const auto in, list_of(document, "input_lens", 0));
  BERTH_ASSIGN(const auto out, list_of(document, "output_lens", in.size()));
  BERTH_ASSIGN(const auto ttfts, list_of(document, "ttfts", in.size()));
  BERTH_ASSIGN(const JsonPlace itls, document.get("itls"));
  BERTH_ASSIGN(const auto lists, itls.items(kMostPointRequests));
  if (lists.size() != in.size())
    return itls.error(fmt::format("expected {} lists, as input_lens has elements, got {}",
                                  in.size(), lists.size()));
  std::vector<double> starts(in.size(), -1);
  if (document.find("start_times")) {
    BERTH_ASSIGN(starts, list_of(document, "start_times", in.size()));
  }
  std::vector<RequestTimes> requests;
  std::size_t gaps = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    BERTH_ASSIGN(const auto seconds, lists[i].numbers(kMostRows));
    gaps += seconds.size();
    if (gaps > kMostRows) return itls.error(fmt::format("more than {} numbers", kMostRows));
    if (ttfts[i] <= 0 || out[i] < 1) continue;
    RequestTimes request{.start_ms = kSecondMs * starts[i],
                         .in_tokens = in[i],
                         .out_tokens = out[i],
                         .ttft_ms = kSecondMs * ttfts[i],
                         .itl_ms = 0};
    for (const double s : seconds) {
      if (!(s >= 0 && s <= kMostMs)) return lists[i].error("expected times from 0 on");
      request.itl_ms += kSecondMs * s / static_cast<double>(seconds.size());
      request.gaps_ms.push_back(static_cast<float>(kSecondMs * s));
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

struct ServingTool {
  std::string_view name;
  std::array<std::string_view, 3> model;  // paths of the model's name, of which the first counts
  std::string_view tokens_per_step;       // key of the mean number, with speculative decoding
  Pauses pauses;
};
constexpr ServingTool kVllm{
    "vLLM", {"model_id"}, "spec_decode_acceptance_length", Pauses::numpy_seed_0};
constexpr ServingTool kSglang{
    "sglang", {"model_id", "model", "server_info.model_path"}, "accept_length", Pauses::unknown};

Status read_details(const JsonPlace& document, const ServingTool& tool, OperatingPoint& point,
                    std::vector<std::string>& notes) {
  BERTH_ASSIGN(auto requests, requests_of(document));
  if (auto note = correct_gaps(point.name, requests)) notes.push_back(*std::move(note));
  BERTH_ASSIGN(const JsonPlace lengths, document.get("input_lens"));
  BERTH_ASSIGN(const auto sent, lengths.items(kMostPointRequests));
  if (!point.errors) point.errors = static_cast<std::int64_t>(sent.size() - requests.size());
  summarize(point, requests);
  BERTH_ASSIGN(const double burstiness, document.number_or("burstiness", 1));
  if (document.find("start_times")) {
    double first = HUGE_VAL;
    for (const auto& request : requests) first = std::min(first, request.start_ms);
    for (auto& request : requests) request.start_ms -= first;
    std::ranges::stable_sort(requests, {}, &RequestTimes::start_ms);
  } else {
    // A request that failed took its place in the order of the starts.
    const bool whole = point.errors == 0;
    if (!whole || !find_starts(requests, point, burstiness == 1 ? tool.pauses : Pauses::unknown))
      return {};
    notes.push_back(fmt::format(
        "{}: has no start_times; the starts are those that the tool draws by default, which fit "
        "the run's duration",
        point.name));
  }
  point.timeline = std::move(requests);
  return {};
}

Result<MeasuredFigures> figures_of(const JsonPlace& document, std::string_view name) {
  MeasuredFigures figures;
  BERTH_ASSIGN(const JsonPlace mean, document.get(fmt::format("mean_{}_ms", name)));
  BERTH_ASSIGN(figures.mean, milliseconds(mean));
  BERTH_ASSIGN(figures.p95, document.number_or(fmt::format("p95_{}_ms", name), 0));
  BERTH_ASSIGN(figures.p99, document.number_or(fmt::format("p99_{}_ms", name), 0));
  return figures;
}

/// The times between tokens; results of 2024 have mean_tpot_ms alone.
Status read_token_times(const JsonPlace& document, const ServingTool& tool, OperatingPoint& point,
                        std::vector<std::string>& notes) {
  StreamedTimes times;
  BERTH_ASSIGN(times.mean_tpot_ms, document.number_or("mean_tpot_ms", 0));
  BERTH_ASSIGN(times.median_itl_ms, document.number_or("median_itl_ms", 0));
  BERTH_ASSIGN(times.tokens_per_step, document.number_or(tool.tokens_per_step, 0));
  if (times.mean_tpot_ms > 0 && !document.find("mean_itl_ms")) {
    point.itl_ms.mean = times.mean_tpot_ms;
    return {};
  }
  BERTH_ASSIGN(point.itl_ms, figures_of(document, "itl"));
  times.mean_itl_ms = point.itl_ms.mean;
  auto time = token_time(point.name, times);
  if (time.ms != point.itl_ms.mean) point.itl_ms = {.mean = time.ms};
  if (time.note) notes.push_back(*std::move(time.note));
  return {};
}

Status read_summary(const JsonPlace& document, const ServingTool& tool, OperatingPoint& point,
                    std::vector<std::string>& notes) {
  BERTH_ASSIGN(point.ttft_ms, figures_of(document, "ttft"));
  BERTH_TRY(read_token_times(document, tool, point, notes));
  const auto requests = static_cast<double>(point.requests.value_or(0));
  if (requests == 0) return {};
  BERTH_ASSIGN(const double in, document.number("total_input_tokens"));
  BERTH_ASSIGN(const double out, document.number("total_output_tokens"));
  point.in_tokens.mean = std::clamp(in / requests, 0.0, kMostMs);
  point.out_tokens.mean = std::clamp(out / requests, 0.0, kMostMs);
  point.rate_per_s = requests / point.duration_s;
  const double present_ms =
      point.ttft_ms.mean + point.itl_ms.mean * std::max(0.0, point.out_tokens.mean - 1);
  point.concurrency = point.rate_per_s * present_ms / kSecondMs;
  return {};
}

/// Requests that failed: `failed`, otherwise those of `num_prompts` that did not complete.
Status read_counts(const JsonPlace& document, OperatingPoint& point) {
  BERTH_ASSIGN(const JsonPlace completed, document.get("completed"));
  BERTH_ASSIGN(const double count, number_within(completed, 0, kMostPointRequests));
  point.requests = static_cast<std::int64_t>(count);
  if (!document.find("failed") && !document.find("num_prompts")) return {};
  BERTH_ASSIGN(const double prompts, document.number_or("num_prompts", count));
  BERTH_ASSIGN(const double failed, document.number_or("failed", prompts - count));
  point.errors = static_cast<std::int64_t>(std::clamp<double>(failed, 0, kMostPointRequests));
  return {};
}

Result<BenchmarkFile> read_serving(const std::string& name, const JsonPlace& document,
                                   const ServingTool& tool) {
  Measured measured;
  for (const std::string_view path : tool.model)
    if (const auto model = path.empty() ? std::nullopt : document.find(path)) {
      BERTH_ASSIGN(measured.model, model->text());
      break;
    }
  OperatingPoint point;
  point.name = name;
  BERTH_ASSIGN(const JsonPlace duration, document.get("duration"));
  BERTH_ASSIGN(point.duration_s, number_within(duration, 1e-3, kMostMs));
  BERTH_TRY(read_counts(document, point));
  if (const auto rate = document.find("request_rate")) {
    point.offered_per_s = HUGE_VAL;
    if (!rate->is_text()) {
      BERTH_ASSIGN(point.offered_per_s, number_within(*rate, 1e-6, kMostMs));
    }
  }
  if (const auto at = document.find("max_concurrency")) {
    BERTH_ASSIGN(point.max_concurrency, number_within(*at, 1, kMostPointRequests));
  }
  BenchmarkFile file{.tool = tool.name, .detail = Detail::summary};
  if (document.find("itls") && document.find("input_lens")) {
    file.detail = Detail::requests;
    BERTH_TRY(read_details(document, tool, point, file.notes));
  } else {
    BERTH_TRY(read_summary(document, tool, point, file.notes));
  }
  measured.points.push_back(std::move(point));
  file.measured.push_back(std::move(measured));
  return file;
}

}  // namespace

bool is_vllm(const JsonPlace& document) {
  return document.find("model_id") && document.find("completed") && document.find("duration");
}

Result<BenchmarkFile> read_vllm(const std::string& name, const JsonPlace& document) {
  return read_serving(name, document, kVllm);
}

bool is_sglang(const JsonPlace& document) {
  return document.find("completed") && document.find("duration") &&
         document.find("total_output_tokens") &&
         (document.find("mean_itl_ms") || document.find("median_itl_ms"));
}

Result<BenchmarkFile> read_sglang(const std::string& name, const JsonPlace& document) {
  return read_serving(name, document, kSglang);
}

}  // namespace berth::fleet
