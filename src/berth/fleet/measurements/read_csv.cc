// Tables of comma-separated values.
#include <unordered_set>

#include "berth/base/csv.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/fleet/measurements/benchmark_formats.h"

namespace berth::fleet {
namespace {

constexpr std::size_t kMostCells = 10'000;  // of a row

}  // namespace

std::unexpected<Error> CsvRow::error(std::size_t cell, std::string_view message) const {
  const Place& place = places[std::min(cell, places.size() - 1)];
  return fail(ErrorKind::invalid, "{}:{}:{}: {}", name, place.line, place.column, message);
}

Status CsvRow::expect_cells(std::size_t count) const {
  if (cells.size() == count) return {};
  return error(count, fmt::format("expected {} cells as in the head, got {}", count, cells.size()));
}

Result<std::vector<CsvRow>> read_csv(std::string_view name, std::string_view text) {
  std::vector<CsvRow> rows;
  CsvText rest(text);
  while (!rest.at_end()) {
    CsvRow row{name, {}, {}};
    do {
      row.places.push_back({rest.line(), rest.column()});
      const std::size_t last = row.places.size() - 1;
      if (last == kMostCells) return row.error(last, fmt::format("more than {} cells", kMostCells));
      std::string cell;
      if (rest.rest().starts_with('"')) {
        auto value = rest.take_quoted();
        if (!value) return row.error(last, "a quote is not closed");
        cell = *std::move(value);
      }
      cell += trim(rest.take_plain());
      while (cell.ends_with('\r')) cell.pop_back();
      row.cells.push_back(std::move(cell));
    } while (rest.next_cell());
    if (row.cells.size() == 1 && row.cells[0].empty()) continue;
    if (rows.size() == kMostRows) return row.error(0, fmt::format("more than {} rows", kMostRows));
    rows.push_back(std::move(row));
  }
  return rows;
}

Status CsvTable::check() const {
  const CsvRow& head = rows_.front();
  std::unordered_set<std::string> names;
  for (std::size_t i = 0; i < head.cells.size(); ++i)
    if (!head.cells[i].empty() && !names.insert(lower(head.cells[i])).second)
      return head.error(i, fmt::format("two columns '{}'", clip(head.cells[i])));
  if (size() == 0) return head.error(0, "expected rows below the head, got none");
  for (std::size_t i = 0; i < size(); ++i) BERTH_TRY(row(i).expect_cells(head.cells.size()));
  return {};
}

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto& head = rows_.front().cells;
  for (std::size_t i = 0; i < head.size(); ++i)
    if (lower(head[i]) == lower(name)) return i;
  return std::nullopt;
}

Result<double> CsvTable::number(std::size_t i, std::size_t column, double least,
                                double most) const {
  const std::string& cell = text(i, column);
  const auto number = parse_number(cell);
  if (!number || !(*number >= least && *number <= most))
    return row(i).error(column, fmt::format("{}: expected a number from {} to {}, got '{}'",
                                            rows_.front().cells[column], least, most, clip(cell)));
  return *number;
}

}  // namespace berth::fleet
