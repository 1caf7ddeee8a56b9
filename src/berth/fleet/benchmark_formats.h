// The readers behind benchmark_files.h, one a format.
#pragma once

#include "berth/base/json_place.h"
#include "berth/fleet/benchmark_files.h"

namespace berth::fleet {

// Each reads a document that its is_…() has accepted. Errors name the place, not the file.
bool is_vllm(const JsonPlace& document);
Result<BenchmarkFile> read_vllm(const std::string& name, const JsonPlace& document);
bool is_guidellm(const JsonPlace& document);
Result<BenchmarkFile> read_guidellm(const std::string& name, const JsonPlace& document);
bool is_aiperf(const JsonPlace& document);
Result<BenchmarkFile> read_aiperf(const std::string& name, const JsonPlace& document);

/// profile_export.jsonl of aiperf: a line a request.
bool is_aiperf_request(const JsonPlace& line);
Result<BenchmarkFile> read_aiperf_requests(const std::string& name,
                                           std::span<const std::string_view> lines);

/// A line of comma-separated values.
struct CsvRow {
  std::size_t line = 0;  // counted from 1
  std::vector<std::string> cells;
  std::unexpected<Error> error(std::string_view message) const;
};
/// Empty lines are left out. Errors: invalid, a quote that is not closed.
Result<std::vector<CsvRow>> read_csv(std::string_view text);
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
  /// The column of that name in any case; nullopt: none.
  std::optional<std::size_t> column(std::string_view name) const;
  /// Errors: invalid, "line 7: ms: wanted a number from 0 to …, found 'x'".
  Result<double> number(std::size_t i, std::size_t column, double least, double most) const;
  Result<std::string> text(std::size_t i, std::size_t column) const;

 private:
  std::span<const CsvRow> rows_;
};

/// A number from `least` to `most`. Errors: invalid.
Result<double> number_within(const JsonPlace& at, double least, double most);

}  // namespace berth::fleet
