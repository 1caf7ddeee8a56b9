// Tables of comma-separated values.
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/fleet/benchmark_formats.h"

namespace berth::fleet {
namespace {

constexpr std::size_t kMostCells = 10'000;  // of a row

/// The value within quotes that begins at `at`, a quote; moves `at` behind its end.
std::optional<std::string> quoted(std::string_view text, std::size_t& at, std::size_t& line) {
  std::string value;
  for (++at; at < text.size(); ++at) {
    if (text[at] == '"') {
      if (at + 1 == text.size() || text[at + 1] != '"') {
        ++at;
        return value;
      }
      ++at;
    }
    if (text[at] == '\n') ++line;
    value += text[at];
  }
  return std::nullopt;
}

}  // namespace

std::unexpected<Error> CsvRow::error(std::string_view message) const {
  return fail(ErrorKind::invalid, "line {}: {}", line, message);
}

Result<std::vector<CsvRow>> read_csv(std::string_view text) {
  std::vector<CsvRow> rows;
  std::size_t line = 1, at = 0;
  while (at < text.size()) {
    CsvRow row{line, {}};
    for (bool more = true; more;) {
      std::string cell;
      if (text.substr(at).starts_with('"')) {
        auto value = quoted(text, at, line);
        if (!value) return row.error("a quote is not closed");
        cell = *std::move(value);
      }
      const std::size_t end = std::min(text.find_first_of(",\n", at), text.size());
      cell += trim(text.substr(at, end - at));
      while (cell.ends_with('\r')) cell.pop_back();
      row.cells.push_back(std::move(cell));
      more = end < text.size() && text[end] == ',';
      at = end + 1;
      if (row.cells.size() > kMostCells)
        return row.error(fmt::format("more than {} cells", kMostCells));
    }
    ++line;
    if (row.cells.size() == 1 && row.cells[0].empty()) continue;
    rows.push_back(std::move(row));
    if (rows.size() > kMostRows) return fail(ErrorKind::invalid, "more than {} rows", kMostRows);
  }
  return rows;
}

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto& head = rows_.front().cells;
  for (std::size_t i = 0; i < head.size(); ++i)
    if (lower(head[i]) == lower(name)) return i;
  return std::nullopt;
}

Result<std::string> CsvTable::text(std::size_t i, std::size_t column) const {
  const CsvRow& cells = row(i);
  if (cells.cells.size() <= column)
    return cells.error(fmt::format("wanted {} cells as in the head, found {}",
                                   rows_.front().cells.size(), cells.cells.size()));
  return cells.cells[column];
}

Result<double> CsvTable::number(std::size_t i, std::size_t column, double least,
                                double most) const {
  BERTH_ASSIGN(const std::string cell, text(i, column));
  const auto number = parse_number(cell);
  if (!number || !(*number >= least && *number <= most))
    return row(i).error(fmt::format("{}: wanted a number from {} to {}, found '{}'",
                                    rows_.front().cells[column], least, most, clip(cell)));
  return *number;
}

}  // namespace berth::fleet
