// guidellm's benchmarks.json (versions 1 and 2, which differ in where the model is named) and its
// CSV. Of a metric the requests that succeeded count. request_latency is in seconds, times named so
// in ms; inter_token_latency_ms is the mean of a request. Source: guidellm 0.5.0 and 0.8.
#include <algorithm>
#include <cmath>
#include <set>

#include "berth/base/text.h"
#include "berth/fleet/benchmark_formats.h"

namespace berth::fleet {
namespace {

constexpr std::string_view kMetrics = "metrics";

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

Result<double> field(const JsonPlace& request, std::string_view key, double most) {
  BERTH_ASSIGN(const JsonPlace at, request.get(key));
  return number_within(at, 0, most);
}

Result<RequestTimes> request_of(const JsonPlace& request) {
  constexpr double kMostEpoch = 1e11;
  RequestTimes times;
  BERTH_ASSIGN(const double start_s, field(request, "request_start_time", kMostEpoch));
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
  if (items.empty() || items.size() != static_cast<std::size_t>(point.requests)) return {};
  for (const std::string_view key : {"request_start_time", "time_to_first_token_ms"})
    if (!items.front().find(key)) return {};
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
      BERTH_ASSIGN(const double start_s, each.number_or("request_start_time", 0));
      point.complete_until_ms = std::min(point.complete_until_ms, kSecondMs * start_s - first_ms);
    }
  }
  for (auto& request : requests) request.start_ms -= first_ms;
  std::ranges::stable_sort(requests, {}, &RequestTimes::start_ms);
  point.timeline = std::move(requests);
  return {};
}

Status read_strategy(const JsonPlace& benchmark, OperatingPoint& point) {
  const auto strategy = benchmark.find("config.strategy");
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

Result<OperatingPoint> read_benchmark(const JsonPlace& benchmark) {
  OperatingPoint point;
  BERTH_TRY(read_strategy(benchmark, point));
  for (const std::string_view totals :
       {"scheduler_metrics.requests_made", "metrics.request_totals"})
    if (const auto at = benchmark.find(totals)) {
      BERTH_ASSIGN(const double done, at->number_or("successful", 0));
      BERTH_ASSIGN(const double failed, at->number_or("errored", 0));
      point.requests = static_cast<std::int64_t>(std::clamp<double>(done, 0, kMostPointRequests));
      point.errors = static_cast<std::int64_t>(std::clamp<double>(failed, 0, kMostPointRequests));
      break;
    }
  BERTH_ASSIGN(point.duration_s, benchmark.number_or("duration", 0));
  BERTH_ASSIGN(const MeasuredFigures rate, metric(benchmark, "requests_per_second"));
  BERTH_ASSIGN(const MeasuredFigures concurrency, metric(benchmark, "request_concurrency"));
  point.rate_per_s = rate.mean;
  point.concurrency = concurrency.mean;
  BERTH_ASSIGN(point.in_tokens, metric(benchmark, "prompt_token_count"));
  BERTH_ASSIGN(point.out_tokens, metric(benchmark, "output_token_count"));
  BERTH_ASSIGN(point.ttft_ms, metric(benchmark, "time_to_first_token_ms"));
  BERTH_ASSIGN(point.itl_ms, metric(benchmark, "inter_token_latency_ms"));
  if (point.requests == 0) {
    // Older files count the requests in their metrics alone.
    BERTH_ASSIGN(const double count,
                 benchmark.number_or("metrics.time_to_first_token_ms.successful.count", 0));
    point.requests = static_cast<std::int64_t>(std::clamp<double>(count, 0, kMostPointRequests));
  }
  BERTH_TRY(read_requests(benchmark, point));
  return point;
}

/// Of a column of guidellm's CSV, which has three rows of heads: group, field, units.
class GuidellmTable {
 public:
  static constexpr std::size_t kHeads = 3;
  explicit GuidellmTable(std::span<const CsvRow> rows) : rows_(rows) {}
  /// Errors: invalid: two columns of one name, no rows, or one with more or fewer cells.
  Status check() const {
    std::set<std::string> names;
    for (const CsvRow& row : rows_) BERTH_TRY(row.expect_cells(rows_[0].cells.size()));
    for (std::size_t c = 0; c < rows_[0].cells.size(); ++c) {
      std::vector<std::string> name;
      for (const CsvRow& head : rows_.first(kHeads)) name.push_back(head.cells[c]);
      if (!names.insert(join(name, ", ")).second)
        return rows_[1].error(c, fmt::format("two columns '{}'", clip(join(name, ", "))));
    }
    if (rows_.size() == kHeads) return rows_[0].error(0, "wanted rows below the heads, found none");
    return {};
  }
  std::optional<std::size_t> find(std::string_view group, std::string_view field) const {
    for (std::size_t c = 0; c < rows_[0].cells.size() && c < rows_[1].cells.size(); ++c)
      if (lower(rows_[0].cells[c]).find(group) != std::string::npos &&
          lower(rows_[1].cells[c]).find(field) != std::string::npos)
        return c;
    return std::nullopt;
  }
  Result<double> number(const CsvRow& row, std::string_view group, std::string_view field) const {
    const auto column = find(group, field);
    if (!column) return rows_[1].error(0, fmt::format("wanted a column '{}', '{}'", group, field));
    return value(row, *column);
  }
  Result<double> number_or(const CsvRow& row, std::string_view group, std::string_view field,
                           double otherwise) const {
    const auto column = find(group, field);
    return column ? value(row, *column) : otherwise;
  }

 private:
  Result<double> value(const CsvRow& row, std::size_t column) const {
    const CsvRow head_and_row[]{rows_[1], row};
    return CsvTable(head_and_row).number(0, column, 0, kMostMs);
  }
  std::span<const CsvRow> rows_;
};

}  // namespace

bool is_guidellm(const JsonPlace& document) {
  const auto benchmarks = document.find("benchmarks");
  return benchmarks && benchmarks->is_list();
}

Result<BenchmarkFile> read_guidellm(const std::string& name, const JsonPlace& document) {
  Measured measured;
  for (const std::string_view path :
       {"args.model", "config.spec.backend.model", "metadata.model", "args.backend_kwargs.model"})
    if (const auto model = document.find(path); model && model->is_text()) {
      BERTH_ASSIGN(measured.model, model->text());
      break;
    }
  BERTH_ASSIGN(const JsonPlace list, document.get("benchmarks"));
  BERTH_ASSIGN(const auto benchmarks, list.items(kMostPoints));
  if (benchmarks.empty()) return list.error("has no benchmark");
  BenchmarkFile file{.tool = "guidellm", .detail = Detail::requests, .measured = {}, .notes = {}};
  for (std::size_t i = 0; i < benchmarks.size(); ++i) {
    BERTH_ASSIGN(auto point, read_benchmark(benchmarks[i]));
    point.name = fmt::format("{} [{}]", name, i);
    measured.points.push_back(std::move(point));
  }
  file.measured.push_back(std::move(measured));
  return file;
}

bool is_guidellm_csv(std::span<const CsvRow> rows) {
  if (rows.size() < GuidellmTable::kHeads) return false;
  const GuidellmTable table(rows);
  return table.find("time to first token", "mean") && table.find("inter token latency", "mean");
}

Result<BenchmarkFile> read_guidellm_csv(const std::string& name, std::span<const CsvRow> rows) {
  const GuidellmTable table(rows);
  Measured measured;
  BERTH_TRY(table.check());
  if (rows.size() > kMostPoints)
    return rows[kMostPoints].error(0, fmt::format("more than {} rows", kMostPoints));
  for (const CsvRow& row : rows.subspan(GuidellmTable::kHeads)) {
    OperatingPoint point;
    point.name = fmt::format("{}:{}", name, row.places[0].line);
    BERTH_ASSIGN(point.rate_per_s, table.number(row, "server throughput", "requests/sec"));
    BERTH_ASSIGN(point.concurrency, table.number_or(row, "server throughput", "concurrency", 0));
    BERTH_ASSIGN(point.in_tokens.mean, table.number(row, "token metrics", "input tokens"));
    BERTH_ASSIGN(point.out_tokens.mean, table.number(row, "token metrics", "output tokens"));
    BERTH_ASSIGN(point.ttft_ms.mean, table.number(row, "time to first token", "mean"));
    BERTH_ASSIGN(point.itl_ms.mean, table.number(row, "inter token latency", "mean"));
    BERTH_ASSIGN(point.duration_s, table.number_or(row, "timings", "duration", 0));
    const double requests = point.rate_per_s * point.duration_s;
    point.requests = static_cast<std::int64_t>(std::min(requests, 1e6));
    measured.points.push_back(std::move(point));
  }
  BenchmarkFile file{.tool = "guidellm", .detail = Detail::table, .measured = {}, .notes = {}};
  file.measured.push_back(std::move(measured));
  return file;
}

}  // namespace berth::fleet
