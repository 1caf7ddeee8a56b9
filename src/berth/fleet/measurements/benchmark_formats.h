// The readers behind benchmark_files.h, one a format.
#pragma once

#include "berth/base/json_place.h"
#include "berth/fleet/measurements/benchmark_files.h"

namespace berth::fleet {

// Each reads a document that its is_…() has accepted. Errors of JSON name the place, not the file;
// those of tables name both.
bool is_vllm(const JsonPlace& document);
Result<BenchmarkFile> read_vllm(const std::string& name, const JsonPlace& document);
bool is_sglang(const JsonPlace& document);
Result<BenchmarkFile> read_sglang(const std::string& name, const JsonPlace& document);
bool is_llmperf(const JsonPlace& document);
Result<BenchmarkFile> read_llmperf(const std::string& name, const JsonPlace& document);
bool is_trtllm(const JsonPlace& document);
Result<BenchmarkFile> read_trtllm(const std::string& name, const JsonPlace& document);
bool is_guidellm(const JsonPlace& document);
Result<BenchmarkFile> read_guidellm(const std::string& name, const JsonPlace& document);
bool is_aiperf(const JsonPlace& document);
Result<BenchmarkFile> read_aiperf(const std::string& name, const JsonPlace& document);

/// Parses JSON as Python's json module writes it: NaN is null, and Infinity the text "inf".
Result<JsonPlace> parse_tool_json(std::string_view text);

/// The number of requests of a closed loop of which only the mean concurrency is known; at least 1.
double closed_loop_of(double mean_concurrency);

/// A file of the tool that has one point.
BenchmarkFile file_of(std::string_view tool, Detail detail, OperatingPoint point,
                      std::string model = "");
/// A count of requests as an integer, within the limit of a point.
std::int64_t whole_count(double count);

/// "file:3:1", where the third of a file's lines begins.
std::string line_place(std::string_view name, std::size_t i);

/// profile_export.jsonl of aiperf: a line a request. Errors name the file and the line.
bool is_aiperf_request(const JsonPlace& line);
Result<BenchmarkFile> read_aiperf_requests(const std::string& name,
                                           std::span<const std::string_view> lines);

/// A row of comma-separated values, which refers to the name of its file.
struct CsvRow {
  struct Place {
    std::size_t line = 0, column = 0;  // in bytes; both counted from 1
  };
  std::string_view name;
  std::vector<std::string> cells;
  std::vector<Place> places;  // where each cell begins
  /// invalid: "file:line:column: message", with the place of the cell or, behind them, the last.
  std::unexpected<Error> error(std::size_t cell, std::string_view message) const;
  /// invalid, where there are more or fewer.
  Status expect_cells(std::size_t count) const;
};
/// Empty lines are left out. Errors: invalid, a quote that is not closed, or too much.
Result<std::vector<CsvRow>> read_csv(std::string_view name, std::string_view text);
/// One way to read a table; accepts: whether its head is the format's.
bool is_rows_csv(std::span<const CsvRow> rows);
Result<BenchmarkFile> read_rows_csv(const std::string& name, std::span<const CsvRow> rows);
bool is_splitwise_csv(std::span<const CsvRow> rows);
Result<BenchmarkFile> read_splitwise_csv(const std::string& name, std::span<const CsvRow> rows);
bool is_aiperf_csv(std::span<const CsvRow> rows);
Result<BenchmarkFile> read_aiperf_csv(const std::string& name, std::span<const CsvRow> rows);
bool is_guidellm_csv(std::span<const CsvRow> rows);
Result<BenchmarkFile> read_guidellm_csv(const std::string& name, std::span<const CsvRow> rows);

/// The rows of a table whose first one is its head: cells by the name of their column.
class CsvTable {
 public:
  explicit CsvTable(std::span<const CsvRow> rows) : rows_(rows) {}
  std::size_t size() const { return rows_.size() - 1; }
  const CsvRow& row(std::size_t i) const { return rows_[i + 1]; }
  /// Errors: invalid: two columns of one name, no rows, or one with more or fewer cells than the
  /// head.
  Status check() const;
  /// The column of that name in any case; nullopt: none.
  std::optional<std::size_t> column(std::string_view name) const;
  // Of a table that was checked.
  /// Errors: invalid, "file:7:3: ms: wanted a number from 0 to …, found 'x'".
  Result<double> number(std::size_t i, std::size_t column, double least, double most) const;
  const std::string& text(std::size_t i, std::size_t column) const { return row(i).cells[column]; }

 private:
  std::span<const CsvRow> rows_;
};

/// A number from `least` to `most`. Errors: invalid.
Result<double> number_within(const JsonPlace& at, double least, double most);

}  // namespace berth::fleet
