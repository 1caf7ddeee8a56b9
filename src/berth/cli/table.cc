#include "berth/cli/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/base/units.h"
#include "berth/cli/cells.h"
#include "berth/cli/print.h"

namespace berth::cli {
namespace {

/// Characters as a terminal counts them, near enough: UTF-8 continuation bytes take no room.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

bool numeric(std::string_view text) {
  return text.empty() || text == "-" || parse_number(text).has_value();
}

}  // namespace

std::string Table::text(bool coloured) const {
  const std::size_t columns = rows_.front().size();
  auto rows = rows_;
  for (auto& row : rows)
    for (auto& cell : row) cell = one_line(cell);
  std::vector<std::size_t> widths(columns);
  std::vector<bool> right(columns, true);
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (std::size_t column = 0; column < columns; ++column) {
      widths[column] = std::max(widths[column], width(rows[row][column]));
      if (row > 0 && !numeric(rows[row][column])) right[column] = false;
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t column = 0; column < columns; ++column) {
      const std::string pad(widths[column] - width(row[column]), ' ');
      const std::string cell =
          coloured && rows.front()[column] == "state" ? painted(row[column]) : row[column];
      line += right[column] ? pad + cell : cell + pad;
      if (column + 1 < columns) line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

void print(const Table& table) {
  print_exact(table.text(has_colours()));  // one_line() has made the cells visible
}

std::string ranges_text(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace berth::cli
