// guidellm's benchmarks.json of the versions 0.2 to 0.8, which differ in where the model, the
// strategy and the counts of requests are. Of a metric the requests that succeeded count.
// request_latency is in seconds, times named so in ms; inter_token_latency_ms is the mean of a
// request. bench/fit_formats.md has the sources.
#include <algorithm>
#include <cmath>
#include <span>

#include "berth/fleet/measurements/benchmark_formats.h"

namespace berth::fleet {
namespace {

constexpr std::string_view kMetrics = "metrics";

// Paths of the same fact in different versions; the first that a file has counts.
constexpr std::string_view kModelPaths[]{"args.model", "config.spec.backend.model",
                                         "metadata.model", "args.backend_kwargs.model"};
constexpr std::string_view kBenchmarkModelPaths[]{"worker.backend_model", "config.backend.model",
                                                  "benchmarker.backend.model"};
constexpr std::string_view kStrategyPaths[]{"config.strategy", "args.strategy",
                                            "scheduler.strategy"};
constexpr std::string_view kTotalPaths[]{"metrics.request_totals", "request_totals", "total_count",
                                         "scheduler_metrics.requests_made",
                                         "run_stats.requests_made"};
constexpr std::string_view kRatePaths[]{"requests_per_second", "request_per_second"};
constexpr std::string_view kStartPaths[]{"request_start_time", "start_time"};

std::optional<JsonPlace> first_of(const JsonPlace& at, std::span<const std::string_view> paths) {
  for (const auto path : paths)
    if (auto found = at.find(path)) return found;
  return std::nullopt;
}

Result<MeasuredFigures> metric(const JsonPlace& benchmark, std::string_view name) {
  const std::string path = fmt::format("{}.{}.successful", kMetrics, name);
  BERTH_ASSIGN(const JsonPlace at, benchmark.get(path));
  BERTH_ASSIGN(const JsonPlace mean, at.get("mean"));
  MeasuredFigures figures;
  BERTH_ASSIGN(figures.mean, number_within(mean, 0, kMostMs));
  BERTH_ASSIGN(const double variance, at.number_or("variance", 0));
  figures.square = figures.mean * figures.mean + std::max(0.0, variance);
  BERTH_ASSIGN(figures.p95, at.number_or("percentiles.p95", 0));
  BERTH_ASSIGN(figures.p99, at.number_or("percentiles.p99", 0));
  return figures;
}

/// A run without streaming has no times of tokens.
Result<MeasuredFigures> metric_if_there(const JsonPlace& benchmark, std::string_view name) {
  const std::string path = fmt::format("{}.{}.successful", kMetrics, name);
  return benchmark.find(path) ? metric(benchmark, name) : MeasuredFigures{};
}

Result<double> field(const JsonPlace& request, std::string_view key, double most) {
  BERTH_ASSIGN(const JsonPlace at, request.get(key));
  return number_within(at, 0, most);
}

Result<RequestTimes> request_of(const JsonPlace& request) {
  constexpr double kMostEpoch = 1e11;
  RequestTimes times;
  const auto start = first_of(request, kStartPaths);
  if (!start) return request.error(fmt::format("there is no '{}'", kStartPaths[0]));
  BERTH_ASSIGN(const double start_s, number_within(*start, 0, kMostEpoch));
  times.start_ms = kSecondMs * start_s;
  BERTH_ASSIGN(times.in_tokens, field(request, "prompt_tokens", kMostMs));
  BERTH_ASSIGN(times.out_tokens, field(request, "output_tokens", kMostMs));
  BERTH_ASSIGN(times.ttft_ms, field(request, "time_to_first_token_ms", kMostMs));
  if (times.out_tokens > 1) {
    BERTH_ASSIGN(times.itl_ms, field(request, "inter_token_latency_ms", kMostMs));
  }
  return times;
}

/// The requests, where the file has all of them with their times; else none: it may hold a sample.
Status read_requests(const JsonPlace& benchmark, OperatingPoint& point) {
  const auto list = benchmark.find("requests.successful");
  if (!list || !list->is_list()) return {};
  BERTH_ASSIGN(const auto items, list->items(kMostPointRequests));
  if (items.empty() || std::ssize(items) != point.requests) return {};
  if (!first_of(items.front(), kStartPaths) || !items.front().find("time_to_first_token_ms"))
    return {};
  std::vector<RequestTimes> requests;
  double first_ms = HUGE_VAL;
  for (const auto& item : items) {
    BERTH_ASSIGN(auto request, request_of(item));
    first_ms = std::min(first_ms, request.start_ms);
    requests.push_back(std::move(request));
  }
  // What was cut off at the end of the run took its part of the server too.
  if (const auto cut = benchmark.find("requests.incomplete"); cut && cut->is_list()) {
    BERTH_ASSIGN(const auto cut_off, cut->items(kMostPointRequests));
    for (const auto& each : cut_off) {
      const auto start = first_of(each, kStartPaths);
      if (!start) continue;
      BERTH_ASSIGN(const double start_s, start->number());
      point.complete_until_ms = std::min(point.complete_until_ms, kSecondMs * start_s - first_ms);
    }
  }
  for (auto& request : requests) request.start_ms -= first_ms;
  std::ranges::stable_sort(requests, {}, &RequestTimes::start_ms);
  point.timeline = std::move(requests);
  return {};
}

Status read_strategy(const JsonPlace& benchmark, OperatingPoint& point) {
  const auto strategy = first_of(benchmark, kStrategyPaths);
  if (!strategy) return {};
  std::string kind;
  if (const auto type = strategy->find("type_")) {
    BERTH_ASSIGN(kind, type->text());
  }
  if (kind == "synchronous") point.max_concurrency = 1;
  if (kind == "throughput") point.offered_per_s = HUGE_VAL;
  if (kind == "concurrent")
    for (const std::string_view key : {"streams", "max_concurrency"})
      if (const auto streams = strategy->find(key); streams && streams->is_number()) {
        BERTH_ASSIGN(point.max_concurrency, number_within(*streams, 1, kMostPointRequests));
      }
  if (kind == "constant" || kind == "poisson") {
    BERTH_ASSIGN(const double rate, strategy->number_or("rate", 0));
    if (rate > 0) point.offered_per_s = rate;
  }
  return {};
}

/// The counts of requests that succeeded and failed; those that were cut off at the end are
/// neither.
Status read_totals(const JsonPlace& benchmark, OperatingPoint& point) {
  const auto totals = first_of(benchmark, kTotalPaths);
  const auto count = totals ? totals->find("successful")
                            : benchmark.find("metrics.time_to_first_token_ms.successful.count");
  if (count) {
    BERTH_ASSIGN(const double done, number_within(*count, 0, kMostPointRequests));
    point.requests = static_cast<std::int64_t>(done);
  }
  if (const auto errored = totals ? totals->find("errored") : std::nullopt) {
    BERTH_ASSIGN(const double failed, number_within(*errored, 0, kMostPointRequests));
    point.errors = static_cast<std::int64_t>(failed);
  }
  return {};
}

Result<OperatingPoint> read_benchmark(const JsonPlace& benchmark) {
  OperatingPoint point;
  BERTH_TRY(read_strategy(benchmark, point));
  BERTH_TRY(read_totals(benchmark, point));
  BERTH_ASSIGN(point.duration_s, benchmark.number_or("duration", 0));
  if (point.requests == 0) return point;
  const bool old_rate = !benchmark.find("metrics.requests_per_second");
  BERTH_ASSIGN(const MeasuredFigures rate, metric(benchmark, kRatePaths[old_rate]));
  BERTH_ASSIGN(const MeasuredFigures concurrency, metric(benchmark, "request_concurrency"));
  point.rate_per_s = rate.mean;
  point.concurrency = concurrency.mean;
  BERTH_ASSIGN(point.in_tokens, metric(benchmark, "prompt_token_count"));
  BERTH_ASSIGN(point.out_tokens, metric(benchmark, "output_token_count"));
  BERTH_ASSIGN(point.ttft_ms, metric_if_there(benchmark, "time_to_first_token_ms"));
  BERTH_ASSIGN(point.itl_ms, metric_if_there(benchmark, "inter_token_latency_ms"));
  BERTH_TRY(read_requests(benchmark, point));
  return point;
}

}  // namespace

bool is_guidellm(const JsonPlace& document) {
  const auto benchmarks = document.find("benchmarks");
  return benchmarks && benchmarks->is_list();
}

Result<BenchmarkFile> read_guidellm(const std::string& name, const JsonPlace& document) {
  Measured measured;
  BERTH_ASSIGN(const JsonPlace list, document.get("benchmarks"));
  BERTH_ASSIGN(const auto benchmarks, list.items(kMostPoints));
  if (benchmarks.empty()) return list.error("has no benchmark");
  auto model = first_of(document, kModelPaths);
  if (!model) model = first_of(benchmarks.front(), kBenchmarkModelPaths);
  if (model) {
    BERTH_ASSIGN(measured.model, model->text());
  }
  BenchmarkFile file{.tool = "guidellm", .detail = Detail::requests};
  for (std::size_t i = 0; i < benchmarks.size(); ++i) {
    BERTH_ASSIGN(auto point, read_benchmark(benchmarks[i]));
    point.name = fmt::format("{} [{}]", name, i);
    measured.points.push_back(std::move(point));
  }
  file.measured.push_back(std::move(measured));
  return file;
}

}  // namespace berth::fleet
