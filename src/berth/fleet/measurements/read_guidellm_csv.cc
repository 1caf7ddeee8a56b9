// guidellm's benchmarks.csv: a row a benchmark. Until 0.3 one row of heads ("Successful Time to
// first token ms mean"), since 0.4 three (group / status and unit / statistic). Which columns there
// are depends on the run, so that they are found by the words in their heads. bench/fit_formats.md
// has the sources.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/fleet/measurements/benchmark_formats.h"

namespace berth::fleet {
namespace {

/// The words of a column's heads, all of which have to be there.
using Words = std::array<std::string_view, 3>;

enum class TableFact : std::uint8_t {
  rate,
  concurrency,
  in_tokens,
  in_deviation,
  out_tokens,
  out_deviation,
  ttft,
  itl,
  duration,
  requests,
  errors,
  strategy,
};

/// The heads of a version of the format.
struct Layout {
  std::size_t heads = 0;  // rows
  struct Column {
    TableFact fact;
    Words words;
  };
  std::array<Column, 12> columns;
};

constexpr Layout kOneRow{
    1,
    {{{TableFact::rate, {"successful", "per second", "mean"}},
      {TableFact::concurrency, {"successful", "request concurrency", "mean"}},
      {TableFact::in_tokens, {"successful", "prompt token count", "mean"}},
      {TableFact::in_deviation, {"successful", "prompt token count", "std dev"}},
      {TableFact::out_tokens, {"successful", "output token count", "mean"}},
      {TableFact::out_deviation, {"successful", "output token count", "std dev"}},
      {TableFact::ttft, {"successful", "time to first token", "mean"}},
      {TableFact::itl, {"successful", "inter token latency", "mean"}},
      {TableFact::duration, {"duration"}},
      {TableFact::requests, {"successful requests"}},
      {TableFact::errors, {"errored requests"}},
      {TableFact::strategy, {"name"}}}}};
constexpr Layout kThreeRows{
    3,
    {{{TableFact::rate, {"server throughput", "requests/sec", "mean"}},
      {TableFact::concurrency, {"server throughput", "concurrency", "mean"}},
      {TableFact::in_tokens, {"token metrics", "input tokens", "mean"}},
      {TableFact::in_deviation, {"token metrics", "input tokens", "std dev"}},
      {TableFact::out_tokens, {"token metrics", "output tokens", "mean"}},
      {TableFact::out_deviation, {"token metrics", "output tokens", "std dev"}},
      {TableFact::ttft, {"time to first token", "mean"}},
      {TableFact::itl, {"inter token latency", "mean"}},
      {TableFact::duration, {"timings", "duration"}},
      {TableFact::requests, {"request counts", "successful"}},
      {TableFact::errors, {"request counts", "errored"}},
      {TableFact::strategy, {"benchmark", "strategy"}}}}};

/// A table with the heads of a layout.
class GuidellmTable {
 public:
  GuidellmTable(std::span<const CsvRow> rows, const Layout& layout) : rows_(rows), layout_(layout) {
    if (rows.size() < layout.heads) return;
    for (std::size_t c = 0; c < rows[0].cells.size(); ++c) {
      std::vector<std::string> words;
      for (const CsvRow& head : rows.first(layout.heads))
        if (c < head.cells.size()) words.push_back(head.cells[c]);
      names_.push_back(join(words, ", "));
    }
  }
  /// Errors: invalid: two columns of one name, no rows, or one with more or fewer cells.
  Status check() const {
    for (const CsvRow& row : rows_) BERTH_TRY(row.expect_cells(rows_[0].cells.size()));
    std::set<std::string> seen;
    for (std::size_t c = 0; c < names_.size(); ++c)
      if (!seen.insert(names_[c]).second)
        return head().error(c, fmt::format("two columns '{}'", clip(names_[c])));
    if (rows_.size() == layout_.heads)
      return rows_[0].error(0, "expected rows below the heads, got none");
    return {};
  }
  std::span<const CsvRow> rows() const { return rows_.subspan(layout_.heads); }
  /// The column of the requests that succeeded, or of all where statuses are not distinguished.
  std::optional<std::size_t> find(TableFact fact) const {
    const Words& words = words_of(fact);
    std::optional<std::size_t> found;
    for (std::size_t c = 0; c < names_.size(); ++c) {
      const std::string name = lower(names_[c]);
      if (!std::ranges::all_of(words, [&](auto word) { return name.contains(word); })) continue;
      const bool single = words[1].empty();  // the whole head, of which others have a part
      if (single && name != words[0]) continue;
      if (fact != TableFact::errors && (name.contains("incomplete") || name.contains("errored")))
        continue;
      if (!found || (!lower(names_[*found]).contains(kSucceeded) && name.contains(kSucceeded)))
        found = c;
    }
    return found;
  }
  /// invalid: there is no such column, or its cell is not a number from 0 on.
  Result<double> number(const CsvRow& row, TableFact fact) const {
    const auto column = find(fact);
    if (!column) {
      std::vector<std::string> words;
      for (const auto word : words_of(fact))
        if (!word.empty()) words.emplace_back(word);
      return head().error(0, fmt::format("expected a column '{}'", join(words, ", ")));
    }
    const CsvRow head_and_row[]{head(), row};
    return CsvTable(head_and_row).number(0, *column, 0, kMostMs);
  }
  /// nullopt: no such column, or an empty cell.
  Result<std::optional<double>> number_if_there(const CsvRow& row, TableFact fact) const {
    const auto column = find(fact);
    if (!column || row.cells[*column].empty()) return std::nullopt;
    BERTH_ASSIGN(const double value, number(row, fact));
    return value;
  }
  std::string text(const CsvRow& row, TableFact fact) const {
    const auto column = find(fact);
    return column ? lower(row.cells[*column]) : "";
  }

 private:
  static constexpr std::string_view kSucceeded = "successful";
  const Words& words_of(TableFact fact) const {
    return layout_.columns[static_cast<std::size_t>(fact)].words;
  }
  const CsvRow& head() const { return rows_[layout_.heads > 1 ? 1 : 0]; }

  std::span<const CsvRow> rows_;
  const Layout& layout_;
  std::vector<std::string> names_;  // of the columns
};

const Layout* layout_of(std::span<const CsvRow> rows) {
  for (const Layout* layout : {&kOneRow, &kThreeRows}) {
    if (rows.size() < layout->heads) continue;
    const GuidellmTable table(rows, *layout);
    if (table.find(TableFact::ttft) && table.find(TableFact::itl)) return layout;
  }
  return nullptr;
}

/// "synchronous", "concurrent@16", "constant@4.80": of a closed loop the table of 0.4 does not say
/// how many requests are in it, which is about the measured concurrency.
void take_strategy(const std::string& strategy, OperatingPoint& point) {
  const auto at = strategy.find('@');
  const std::string kind = strategy.substr(0, at);
  const auto parsed = parse_number(at == std::string::npos ? "" : strategy.substr(at + 1));
  const auto value = parsed ? std::optional(*parsed) : std::nullopt;
  const bool rated = kind == "constant" || kind == "poisson" || kind == "async";
  if (kind == "synchronous") point.max_concurrency = 1;
  if (kind == "throughput") point.offered_per_s = HUGE_VAL;
  if (rated && value && *value > 0) point.offered_per_s = *value;
  if (kind == "concurrent")
    point.max_concurrency = closed_loop_of(value.value_or(point.concurrency));
}

Status take_lengths(const GuidellmTable& table, const CsvRow& row, OperatingPoint& point) {
  struct Length {
    MeasuredFigures* to;
    TableFact mean, deviation;
  };
  for (const auto& [to, mean, deviation] :
       {Length{&point.in_tokens, TableFact::in_tokens, TableFact::in_deviation},
        Length{&point.out_tokens, TableFact::out_tokens, TableFact::out_deviation}}) {
    BERTH_ASSIGN(to->mean, table.number(row, mean));
    BERTH_ASSIGN(const auto spread, table.number_if_there(row, deviation));
    if (spread) to->square = to->mean * to->mean + *spread * *spread;
  }
  return {};
}

Status take_counts(const GuidellmTable& table, const CsvRow& row, OperatingPoint& point) {
  BERTH_ASSIGN(const auto duration, table.number_if_there(row, TableFact::duration));
  BERTH_ASSIGN(const auto requests, table.number_if_there(row, TableFact::requests));
  BERTH_ASSIGN(const auto errors, table.number_if_there(row, TableFact::errors));
  point.duration_s = duration.value_or(0);
  if (requests)
    point.requests = whole_count(*requests);
  else if (duration)
    point.requests = whole_count(point.rate_per_s * *duration);
  if (errors) point.errors = whole_count(*errors);
  return {};
}

}  // namespace

bool is_guidellm_csv(std::span<const CsvRow> rows) {
  return layout_of(rows) != nullptr;
}

Result<BenchmarkFile> read_guidellm_csv(const std::string& name, std::span<const CsvRow> rows) {
  const GuidellmTable table(rows, *layout_of(rows));
  Measured measured;
  BERTH_TRY(table.check());
  if (rows.size() > kMostPoints)
    return rows[kMostPoints].error(0, fmt::format("more than {} rows", kMostPoints));
  for (const CsvRow& row : table.rows()) {
    OperatingPoint point;
    point.name = fmt::format("{}:{}", name, row.places[0].line);
    BERTH_ASSIGN(point.rate_per_s, table.number(row, TableFact::rate));
    BERTH_ASSIGN(const auto concurrency, table.number_if_there(row, TableFact::concurrency));
    point.concurrency = concurrency.value_or(0);
    BERTH_TRY(take_lengths(table, row, point));
    BERTH_ASSIGN(point.ttft_ms.mean, table.number(row, TableFact::ttft));
    BERTH_ASSIGN(point.itl_ms.mean, table.number(row, TableFact::itl));
    BERTH_TRY(take_counts(table, row, point));
    take_strategy(table.text(row, TableFact::strategy), point);
    measured.points.push_back(std::move(point));
  }
  BenchmarkFile file{.tool = "guidellm", .detail = Detail::table};
  file.measured.push_back(std::move(measured));
  return file;
}

}  // namespace berth::fleet
