// JSON of aiperf and genai-perf: a summary, and a line a request. A metric says its unit, which
// decides. bench/fit_formats.md has the sources.
#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/fleet/measurements/aiperf_metrics.h"
#include "berth/fleet/measurements/benchmark_formats.h"
#include "berth/fleet/measurements/streamed_tokens.h"

namespace berth::fleet {
namespace {

constexpr double kMsPerNs = 1e-6;

struct Unit {
  std::string_view name;
  double scale;  // to ms, or to what else it counts
};
constexpr Unit kUnits[] = {
    {"ms", 1},    {"milliseconds", 1}, {"s", 1000},   {"sec", 1000},   {"seconds", 1000},
    {"us", 1e-3}, {"ns", 1e-6},        {"tokens", 1}, {"requests", 1}, {"requests/sec", 1},
    {"count", 1}, {"per sec", 1},      {"", 1}};

Result<double> scale_at(const JsonPlace& metric) {
  const auto unit = metric.find("unit");
  if (!unit) return 1;
  BERTH_ASSIGN(const std::string text, unit->text());
  const auto scale = unit_scale(text);
  if (!scale)
    return unit->error(
        fmt::format("expected ms, sec, tokens or requests/sec, got '{}'", clip(text)));
  return *scale;
}

Result<MeasuredFigures> figures_at(const JsonPlace& metric) {
  BERTH_ASSIGN(const double scale, scale_at(metric));
  BERTH_ASSIGN(const JsonPlace mean, metric.get("avg"));
  BERTH_ASSIGN(const double avg, number_within(mean, 0, kMostMs));
  BERTH_ASSIGN(const double std, metric.number_or("std", 0));
  BERTH_ASSIGN(const double p95, metric.number_or("p95", 0));
  BERTH_ASSIGN(const double p99, metric.number_or("p99", 0));
  return MeasuredFigures{.mean = scale * avg,
                         .square = scale * scale * (avg * avg + std * std),
                         .p95 = scale * p95,
                         .p99 = scale * p99};
}

Result<MeasuredFigures> wanted(const JsonPlace& document, std::string_view name) {
  BERTH_ASSIGN(const JsonPlace metric, document.get(name));
  return figures_at(metric);
}

/// The lengths; genai-perf until mid-2024 has the older name.
Result<MeasuredFigures> lengths(const JsonPlace& document, std::string_view name,
                                std::string_view older) {
  return wanted(document, document.find(older) ? older : name);
}

/// The times of tokens, which a run without streaming does not have.
Result<MeasuredFigures> streamed(const JsonPlace& document, std::string_view name) {
  if (!document.find(name))
    return document.error(fmt::format("there is no '{}'; measure with --streaming", name));
  return wanted(document, name);
}

Result<std::optional<double>> if_there(const JsonPlace& document, std::string_view name) {
  const auto metric = document.find(name);
  if (!metric) return std::nullopt;
  BERTH_ASSIGN(const auto figures, figures_at(*metric));
  return figures.mean;
}

// Paths of the same fact in different versions; the first that a file has counts.
constexpr std::string_view kConcurrencyPaths[]{"input_config.loadgen.concurrency",
                                               "input_config.perf_analyzer.stimulus.concurrency",
                                               "input_config.concurrency"};
constexpr std::string_view kRequestRatePaths[]{"input_config.loadgen.request_rate",
                                               "input_config.perf_analyzer.stimulus.request_rate",
                                               "input_config.request_rate"};
constexpr std::string_view kModelNamePaths[]{"input_config.endpoint.model_names",
                                             "input_config.model_names", "input_config.model"};

Status read_load(const JsonPlace& document, OperatingPoint& point) {
  for (const auto path : kConcurrencyPaths)
    if (const auto at = document.find(path); at && at->is_number()) {
      BERTH_ASSIGN(point.max_concurrency, number_within(*at, 1, kMostPointRequests));
    }
  for (const auto path : kRequestRatePaths)
    if (const auto rate = document.find(path); rate && rate->is_number()) {
      BERTH_ASSIGN(point.offered_per_s, number_within(*rate, 0, kMostMs));
      point.max_concurrency.reset();
    }
  return {};
}

std::string model_of(const JsonPlace& document) {
  for (const auto path : kModelNamePaths)
    if (const auto names = document.find(path); names && names->is_list())
      if (const auto items = names->items(kMostPoints); items && !items->empty())
        if (const auto text = items->front().text()) return *text;
  return {};
}

Result<double> value_at(const JsonPlace& line, std::string_view name) {
  BERTH_ASSIGN(const JsonPlace metric, line.get(fmt::format("metrics.{}", name)));
  BERTH_ASSIGN(const double scale, scale_at(metric));
  BERTH_ASSIGN(const JsonPlace value, metric.get("value"));
  BERTH_ASSIGN(const double number, number_within(value, 0, kMostMs));
  return scale * number;
}

Result<RequestTimes> request_of_line(const JsonPlace& line) {
  constexpr double kMostNs = 1e19;
  RequestTimes request;
  BERTH_ASSIGN(const JsonPlace start, line.get("metadata.request_start_ns"));
  BERTH_ASSIGN(const double start_ns, number_within(start, 0, kMostNs));
  request.start_ms = kMsPerNs * start_ns;
  BERTH_ASSIGN(request.in_tokens, value_at(line, "input_sequence_length"));
  BERTH_ASSIGN(request.out_tokens, value_at(line, "output_sequence_length"));
  BERTH_ASSIGN(request.ttft_ms, value_at(line, "time_to_first_token"));
  if (request.out_tokens <= 1) return request;
  BERTH_ASSIGN(request.itl_ms, value_at(line, "inter_token_latency"));
  const auto chunks = line.find("metrics.inter_chunk_latency");
  if (!chunks) return request;
  BERTH_ASSIGN(const double scale, scale_at(*chunks));
  BERTH_ASSIGN(const JsonPlace list, chunks->get("value"));
  BERTH_ASSIGN(const auto gaps, list.numbers(kMostPointRequests));
  for (const double gap : gaps) {
    if (!(gap >= 0 && gap <= kMostMs)) return list.error("expected times from 0 on");
    request.gaps_ms.push_back(static_cast<float>(scale * gap));
  }
  return request;
}

constexpr std::array<std::string_view, 3> kTimes{"time_to_first_token", "request_latency",
                                                 "inter_token_latency"};

}  // namespace

std::optional<double> unit_scale(std::string_view unit) {
  for (const auto& each : kUnits)
    if (each.name == lower(unit)) return each.scale;
  return std::nullopt;
}

void complete(OperatingPoint& point, const AiperfCounts& counts, double latency_ms) {
  if (counts.requests)
    point.requests = whole_count(*counts.requests);
  else if (point.duration_s > 0)
    point.requests = whole_count(point.rate_per_s * point.duration_s);
  if (counts.errors) point.errors = whole_count(*counts.errors);
  point.concurrency = point.rate_per_s * latency_ms / kSecondMs;
}

bool is_aiperf(const JsonPlace& document) {
  return std::ranges::any_of(kTimes, [&](std::string_view name) {
    const auto metric = document.find(name);
    return metric && metric->is_map() && metric->find("avg");
  });
}

Result<BenchmarkFile> read_aiperf(const std::string& name, const JsonPlace& document) {
  OperatingPoint point;
  point.name = name;
  BERTH_ASSIGN(point.ttft_ms, streamed(document, "time_to_first_token"));
  BERTH_ASSIGN(point.itl_ms, streamed(document, "inter_token_latency"));
  BERTH_ASSIGN(point.in_tokens, lengths(document, "input_sequence_length", "num_input_token"));
  BERTH_ASSIGN(point.out_tokens, lengths(document, "output_sequence_length", "num_output_token"));
  BERTH_ASSIGN(const MeasuredFigures rate, wanted(document, "request_throughput"));
  BERTH_ASSIGN(const auto latency, if_there(document, "request_latency"));
  BERTH_ASSIGN(const auto duration, if_there(document, "benchmark_duration"));
  AiperfCounts counts;
  BERTH_ASSIGN(counts.requests, if_there(document, "request_count"));
  BERTH_ASSIGN(counts.errors, if_there(document, "error_request_count"));
  BERTH_TRY(read_load(document, point));
  point.rate_per_s = rate.mean;
  point.duration_s = duration.value_or(0) / kSecondMs;
  complete(point, counts, latency.value_or(0));
  return file_of("aiperf", Detail::summary, std::move(point), model_of(document));
}

bool is_aiperf_request(const JsonPlace& line) {
  return line.find("metadata.request_start_ns") && line.find("metrics");
}

namespace {

struct AiperfRequests {
  std::vector<RequestTimes> whole;
  std::vector<double> cut_off_ms;  // the starts of the others
  std::int64_t errors = 0;
};

Status take_line(const JsonPlace& line, AiperfRequests& requests) {
  if (const auto phase = line.find("metadata.benchmark_phase"))
    if (const auto text = phase->text(); text && *text == "warmup") return {};
  if (line.find("error")) {
    ++requests.errors;
    return {};
  }
  // A request that was cut off has no whole metrics.
  if (!line.find("metrics.time_to_first_token") || !line.find("metrics.output_sequence_length")) {
    BERTH_ASSIGN(const double ns, line.number_or("metadata.request_start_ns", 0));
    requests.cut_off_ms.push_back(kMsPerNs * ns);
    return {};
  }
  BERTH_ASSIGN(auto request, request_of_line(line));
  if (requests.whole.size() == kMostPointRequests)
    return line.error(fmt::format("more than {} requests", kMostPointRequests));
  requests.whole.push_back(std::move(request));
  return {};
}

}  // namespace

Result<BenchmarkFile> read_aiperf_requests(const std::string& name,
                                           std::span<const std::string_view> lines) {
  AiperfRequests read;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) continue;
    const auto line = parse_tool_json(lines[i]);
    if (!line) return std::unexpected(within(line_place(name, i), line.error()));
    if (auto took = take_line(*line, read); !took)
      return std::unexpected(within(line_place(name, i), std::move(took).error()));
  }
  OperatingPoint point;
  point.name = name;
  point.errors = read.errors;
  auto& requests = read.whole;
  std::ranges::stable_sort(requests, {}, &RequestTimes::start_ms);
  const double first_ms = requests.empty() ? 0 : requests.front().start_ms;
  double last_ms = 0;
  for (auto& request : requests) {
    request.start_ms -= first_ms;
    last_ms = std::max(last_ms, request.end_ms());
  }
  for (const double ms : read.cut_off_ms)
    point.complete_until_ms = std::min(point.complete_until_ms, ms - first_ms);
  point.duration_s = last_ms / kSecondMs;
  auto note = correct_gaps(name, requests);
  summarize(point, requests);
  read_load_of_path(name, point);
  point.timeline = std::move(requests);
  BenchmarkFile file = file_of("aiperf", Detail::requests, std::move(point));
  if (note) file.notes.push_back(*std::move(note));
  return file;
}

}  // namespace berth::fleet
