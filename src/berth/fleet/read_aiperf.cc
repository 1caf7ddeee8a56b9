// What aiperf and genai-perf write: a summary as JSON or CSV, and a line of JSON a request. A
// metric says its unit, which decides. Source: aiperf of 2026, whose classes follow genai-perf's
// files.
#include <algorithm>
#include <array>
#include <cmath>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/fleet/benchmark_formats.h"

namespace berth::fleet {
namespace {

constexpr double kMsPerNs = 1e-6;

struct Unit {
  std::string_view name;
  double scale;  // to ms, or to what else it counts
};
constexpr Unit kUnits[] = {{"ms", 1},         {"milliseconds", 1}, {"s", 1000},  {"sec", 1000},
                           {"seconds", 1000}, {"us", 1e-3},        {"ns", 1e-6}, {"tokens", 1},
                           {"requests", 1},   {"requests/sec", 1}, {"count", 1}, {"", 1}};

std::optional<double> scale_of(std::string_view unit) {
  for (const auto& each : kUnits)
    if (each.name == lower(unit)) return each.scale;
  return std::nullopt;
}

Result<double> scale_at(const JsonPlace& metric) {
  const auto unit = metric.find("unit");
  if (!unit) return 1;
  BERTH_ASSIGN(const std::string text, unit->text());
  const auto scale = scale_of(text);
  if (!scale)
    return unit->error(
        fmt::format("wanted ms, sec, tokens or requests/sec, found '{}'", clip(text)));
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

Result<MeasuredFigures> if_there(const JsonPlace& document, std::string_view name) {
  const auto metric = document.find(name);
  return metric ? figures_at(*metric) : MeasuredFigures{};
}

/// What follows from rate, latency and duration; the number of requests where no metric has it.
void complete(OperatingPoint& point, double count, double latency_ms) {
  if (count <= 0) count = point.rate_per_s * point.duration_s;
  point.requests = static_cast<std::int64_t>(std::clamp<double>(count, 0, kMostPointRequests));
  point.concurrency = point.rate_per_s * latency_ms / kSecondMs;
}

Status read_load(const JsonPlace& document, OperatingPoint& point) {
  for (const std::string_view path :
       {"input_config.loadgen.concurrency", "input_config.perf_analyzer.stimulus.concurrency"})
    if (const auto at = document.find(path); at && at->is_number()) {
      BERTH_ASSIGN(point.max_concurrency, number_within(*at, 1, kMostPointRequests));
    }
  if (const auto rate = document.find("input_config.loadgen.request_rate");
      rate && rate->is_number()) {
    BERTH_ASSIGN(point.offered_per_s, number_within(*rate, 0, kMostMs));
    point.max_concurrency.reset();
  }
  return {};
}

std::string model_of(const JsonPlace& document) {
  for (const std::string_view path :
       {"input_config.endpoint.model_names", "input_config.model_names"})
    if (const auto names = document.find(path); names && names->is_list())
      if (const auto items = names->items(kMostPoints); items && !items->empty())
        if (const auto text = items->front().text()) return *text;
  return {};
}

BenchmarkFile file_of(Detail detail, std::string model, OperatingPoint point) {
  BenchmarkFile file{.tool = "aiperf", .detail = detail, .measured = {}, .notes = {}};
  Measured measured;
  measured.model = std::move(model);
  measured.points.push_back(std::move(point));
  file.measured.push_back(std::move(measured));
  return file;
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
  // A chunk may hold several tokens: then it is no iteration.
  if (static_cast<double>(gaps.size()) != request.out_tokens - 1) return request;
  for (const double gap : gaps) {
    if (!(gap >= 0 && gap <= kMostMs)) return list.error("wanted times from 0 on");
    request.gaps_ms.push_back(static_cast<float>(scale * gap));
  }
  return request;
}

constexpr std::array<std::string_view, 3> kTimes{"time_to_first_token", "request_latency",
                                                 "inter_token_latency"};

}  // namespace

bool is_aiperf(const JsonPlace& document) {
  return std::ranges::any_of(kTimes, [&](std::string_view name) {
    const auto metric = document.find(name);
    return metric && metric->is_map() && metric->find("avg");
  });
}

Result<BenchmarkFile> read_aiperf(const std::string& name, const JsonPlace& document) {
  OperatingPoint point;
  point.name = name;
  BERTH_ASSIGN(point.ttft_ms, wanted(document, "time_to_first_token"));
  BERTH_ASSIGN(point.itl_ms, wanted(document, "inter_token_latency"));
  BERTH_ASSIGN(point.in_tokens, wanted(document, "input_sequence_length"));
  BERTH_ASSIGN(point.out_tokens, wanted(document, "output_sequence_length"));
  BERTH_ASSIGN(const MeasuredFigures rate, wanted(document, "request_throughput"));
  BERTH_ASSIGN(const MeasuredFigures latency, if_there(document, "request_latency"));
  BERTH_ASSIGN(const MeasuredFigures count, if_there(document, "request_count"));
  BERTH_ASSIGN(const MeasuredFigures errors, if_there(document, "error_request_count"));
  BERTH_ASSIGN(const MeasuredFigures duration, if_there(document, "benchmark_duration"));
  BERTH_TRY(read_load(document, point));
  point.rate_per_s = rate.mean;
  point.duration_s = duration.mean / kSecondMs;
  point.errors = static_cast<std::int64_t>(std::min<double>(errors.mean, kMostPointRequests));
  complete(point, count.mean, latency.mean);
  return file_of(Detail::summary, model_of(document), std::move(point));
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
    const auto line = JsonPlace::parse(lines[i]);
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
  summarize(point, requests);
  point.timeline = std::move(requests);
  return file_of(Detail::requests, {}, std::move(point));
}

namespace {

constexpr std::string_view kMetricColumn = "Metric";

/// A number as genai-perf writes it: "1,234.56".
std::string without_separators(std::string text) {
  std::erase(text, ',');
  return text;
}

/// The value of the metric in the row, which is no longer than the head above it.
Result<double> csv_value(const CsvRow& row, std::size_t head_cells, std::string_view name) {
  const std::string_view metric = row.cells[0];
  if (row.cells.size() > head_cells) return std::unexpected(row.expect_cells(head_cells).error());
  const auto open = metric.find('(');
  const auto unit = open == std::string_view::npos
                        ? std::string_view()
                        : metric.substr(open + 1, metric.find(')', open) - open - 1);
  const auto scale = scale_of(unit);
  if (!scale)
    return row.error(0,
                     fmt::format("wanted ms, sec, tokens or requests/sec, found '{}'", clip(unit)));
  const auto number = parse_number(without_separators(row.cells[1]));
  if (!number || *number < 0 || *number > kMostMs)
    return row.error(1, fmt::format("{}: wanted a number from 0 to {}, found '{}'", name, kMostMs,
                                    clip(row.cells[1])));
  return *scale * *number;
}

/// The first value of the only row whose name is `name`, but for the unit in parentheses behind it.
Result<double> csv_metric(std::span<const CsvRow> rows, std::string_view name,
                          std::optional<double> otherwise) {
  std::optional<double> found;
  std::size_t head_cells = 0;
  for (const CsvRow& row : rows) {
    const std::string_view metric = row.cells[0];
    if (metric == kMetricColumn) head_cells = row.cells.size();
    if (lower(trim(metric.substr(0, metric.find('(')))) != name || row.cells.size() < 2) continue;
    if (found) return row.error(0, fmt::format("two rows '{}'", name));
    BERTH_ASSIGN(found, csv_value(row, head_cells, name));
  }
  if (!found) found = otherwise;
  if (!found) return rows.front().error(0, fmt::format("wanted a row '{}', found none", name));
  return *found;
}

}  // namespace

bool is_aiperf_csv(std::span<const CsvRow> rows) {
  return rows[0].cells.size() > 1 && rows[0].cells[0] == kMetricColumn && rows[0].cells[1] == "avg";
}

Result<BenchmarkFile> read_aiperf_csv(const std::string& name, std::span<const CsvRow> rows) {
  OperatingPoint point;
  point.name = name;
  BERTH_ASSIGN(point.ttft_ms.mean, csv_metric(rows, "time to first token", {}));
  BERTH_ASSIGN(point.itl_ms.mean, csv_metric(rows, "inter token latency", {}));
  BERTH_ASSIGN(point.in_tokens.mean, csv_metric(rows, "input sequence length", {}));
  BERTH_ASSIGN(point.out_tokens.mean, csv_metric(rows, "output sequence length", {}));
  BERTH_ASSIGN(point.rate_per_s, csv_metric(rows, "request throughput", {}));
  BERTH_ASSIGN(const double latency, csv_metric(rows, "request latency", 0));
  BERTH_ASSIGN(const double duration, csv_metric(rows, "benchmark duration", 0));
  BERTH_ASSIGN(const double count, csv_metric(rows, "request count", 0));
  BERTH_ASSIGN(const double errors, csv_metric(rows, "error request count", 0));
  point.duration_s = duration / kSecondMs;
  point.errors = static_cast<std::int64_t>(std::min<double>(errors, kMostPointRequests));
  complete(point, count, latency);
  return file_of(Detail::table, {}, std::move(point));
}

}  // namespace berth::fleet
