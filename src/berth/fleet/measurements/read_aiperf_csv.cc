// CSV of aiperf and genai-perf: a table of metrics with their statistics, then one of single
// values. The unit is in the name of the metric. bench/fit_formats.md has the sources.
#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/fleet/measurements/aiperf_metrics.h"
#include "berth/fleet/measurements/benchmark_formats.h"

namespace berth::fleet {
namespace {

constexpr std::string_view kMetricColumn = "Metric";

/// A number as genai-perf writes it: "1,234.56".
std::string without_separators(std::string text) {
  std::erase(text, ',');
  return text;
}

/// The value of the metric in the row, which is no longer than the head above it.
Result<double> csv_value(const CsvRow& row, std::size_t head_cells, std::size_t cell,
                         std::string_view name) {
  const std::string_view metric = row.cells[0];
  if (row.cells.size() > head_cells) return std::unexpected(row.expect_cells(head_cells).error());
  const auto open = metric.find('(');
  const auto unit = open == std::string_view::npos
                        ? std::string_view()
                        : metric.substr(open + 1, metric.find(')', open) - open - 1);
  const auto scale = unit_scale(unit);
  if (!scale)
    return row.error(0,
                     fmt::format("expected ms, sec, tokens or requests/sec, got '{}'", clip(unit)));
  const auto number = parse_number(without_separators(row.cells[cell]));
  if (!number || *number < 0 || *number > kMostMs)
    return row.error(cell, fmt::format("{}: expected a number from 0 to {}, got '{}'", name,
                                       kMostMs, clip(row.cells[cell])));
  return *scale * *number;
}

/// Rows of one name may differ in their case ("Time to first token") and have older names.
using Names = std::array<std::string_view, 2>;
constexpr Names kTtft{"time to first token"}, kItl{"inter token latency"},
    kIn{"input sequence length", "num input token"},
    kOut{"output sequence length", "num output token"}, kRate{"request throughput"},
    kLatency{"request latency"}, kDuration{"benchmark duration"}, kCount{"request count"},
    kErrors{"error request count"};

/// The value in a column of the only row that has one of the names, but for the unit in parentheses
/// behind it; nullopt: there is no such row or column. "": the first column of values.
Result<std::optional<double>> csv_metric(std::span<const CsvRow> rows, const Names& names,
                                         std::string_view column = "") {
  std::optional<double> found;
  const CsvRow* head = nullptr;
  for (const CsvRow& row : rows) {
    const std::string metric = row.cells[0];
    if (metric == kMetricColumn) head = &row;
    const std::string name = lower(trim(std::string_view(metric).substr(0, metric.find('('))));
    if (name.empty() || std::ranges::find(names, name) == names.end() || row.cells.size() < 2)
      continue;
    if (found) return row.error(0, fmt::format("two rows '{}'", name));
    std::size_t at = 1;
    if (!column.empty()) {
      if (head == nullptr) continue;
      at = static_cast<std::size_t>(std::ranges::find(head->cells, column) - head->cells.begin());
      if (at >= row.cells.size() || row.cells[at].empty()) continue;
    }
    BERTH_ASSIGN(found, csv_value(row, head == nullptr ? 0 : head->cells.size(), at, name));
  }
  return found;
}

Result<double> wanted_row(std::span<const CsvRow> rows, const Names& names) {
  BERTH_ASSIGN(const auto value, csv_metric(rows, names));
  if (!value) return rows.front().error(0, fmt::format("expected a row '{}', got none", names[0]));
  return *value;
}

Result<MeasuredFigures> lengths_of(std::span<const CsvRow> rows, const Names& names) {
  MeasuredFigures figures;
  BERTH_ASSIGN(figures.mean, wanted_row(rows, names));
  BERTH_ASSIGN(const auto deviation, csv_metric(rows, names, "std"));
  if (deviation) figures.square = figures.mean * figures.mean + *deviation * *deviation;
  return figures;
}

}  // namespace

void read_load_of_path(const std::string& path, OperatingPoint& point) {
  const auto number_after = [&](std::string_view word) -> std::optional<double> {
    const auto at = path.rfind(word);
    if (at == std::string::npos) return std::nullopt;
    const std::string_view behind = std::string_view(path).substr(at + word.size());
    auto number = behind.substr(0, behind.find_first_not_of("0123456789."));
    while (number.ends_with('.')) number.remove_suffix(1);
    const auto parsed = parse_number(number);
    return parsed ? std::optional(*parsed) : std::nullopt;
  };
  constexpr double kMore = 1.05;
  const auto loop = number_after("concurrency"), rate = number_after("request_rate");
  if (rate && *rate > 0)
    point.offered_per_s = *rate;
  else if (loop && *loop >= 1 && point.concurrency > 0 && point.concurrency < kMore * *loop)
    point.max_concurrency = *loop;
}

bool is_aiperf_csv(std::span<const CsvRow> rows) {
  return rows[0].cells.size() > 1 && rows[0].cells[0] == kMetricColumn && rows[0].cells[1] == "avg";
}

Result<BenchmarkFile> read_aiperf_csv(const std::string& name, std::span<const CsvRow> rows) {
  OperatingPoint point;
  point.name = name;
  BERTH_ASSIGN(point.ttft_ms.mean, wanted_row(rows, kTtft));
  BERTH_ASSIGN(point.itl_ms.mean, wanted_row(rows, kItl));
  BERTH_ASSIGN(point.in_tokens, lengths_of(rows, kIn));
  BERTH_ASSIGN(point.out_tokens, lengths_of(rows, kOut));
  BERTH_ASSIGN(point.rate_per_s, wanted_row(rows, kRate));
  BERTH_ASSIGN(const auto latency, csv_metric(rows, kLatency));
  BERTH_ASSIGN(const auto duration, csv_metric(rows, kDuration));
  AiperfCounts counts;
  BERTH_ASSIGN(counts.requests, csv_metric(rows, kCount));
  BERTH_ASSIGN(counts.errors, csv_metric(rows, kErrors));
  point.duration_s = duration.value_or(0) / kSecondMs;
  complete(point, counts, latency.value_or(0));
  read_load_of_path(name, point);
  return file_of("aiperf", Detail::table, std::move(point));
}

}  // namespace berth::fleet
