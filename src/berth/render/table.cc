#include "berth/render/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/render/cells.h"
#include "berth/render/escape.h"

namespace berth::render {
namespace {

std::string heading(const Column& column) {
  return column.unit.empty() ? column.name : column.name + ", " + column.unit;
}

bool is_numeric(std::string_view text) {
  return text.empty() || text == "-" || parse_number(text).has_value();
}

/// A table laid out for text: its heading is row 0.
struct Layout {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> widths;
  std::vector<bool> right;
};

Layout layout_of(const Table& table) {
  Layout layout;
  layout.rows.reserve(table.rows.size() + 1);
  auto& head = layout.rows.emplace_back();
  for (const auto& column : table.columns) head.push_back(one_line(heading(column)));
  for (const auto& row : table.rows) {
    auto& line = layout.rows.emplace_back();
    for (const auto& cell : row) line.push_back(one_line(cell));
  }
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const auto align = table.columns[i].align;
    std::size_t width = 0;
    bool right = align != Column::Align::left;
    for (std::size_t row = 0; row < layout.rows.size(); ++row) {
      const auto& cell = layout.rows[row][i];
      width = std::max(width, cells(cell));
      if (align == Column::Align::by_content && row > 0 && !is_numeric(cell)) right = false;
    }
    layout.widths.push_back(width);
    layout.right.push_back(right);
  }
  return layout;
}

/// The columns that are shown, in order. Those that may be cut become narrower in the layout, so
/// that the lines fit the view.
std::vector<std::size_t> fit_columns(const Table& table, Layout& layout, int width) {
  constexpr std::size_t kCutFirst = 24, kCutLast = 8;  // cells that stay, before and after dropping
  std::vector<std::size_t> shown(table.columns.size());
  for (std::size_t i = 0; i < shown.size(); ++i) shown[i] = i;
  if (width == 0 || shown.empty()) return shown;
  const auto drop = [&](std::size_t i) { return table.columns[i].drop; };
  const auto width_of = [&](std::size_t i, std::size_t most) {
    return drop(i) == Column::kCut ? std::min(most, layout.widths[i]) : layout.widths[i];
  };
  const auto is_too_wide = [&](std::size_t most) {
    std::size_t total = 0;
    for (const auto i : shown) total += width_of(i, most) + 2;
    return total > static_cast<std::size_t>(width) + 2;
  };
  while (is_too_wide(kCutFirst)) {
    const auto first = std::ranges::max_element(shown, {}, drop);
    if (drop(*first) <= 0) break;
    shown.erase(first);
  }
  std::size_t most = std::ranges::max(layout.widths);
  while (is_too_wide(most) && most > kCutLast) --most;
  for (const auto i : shown) layout.widths[i] = width_of(i, most);
  return shown;
}

bool is_number(std::string_view cell) {
  return cell == "-" || cell.empty() || (cell[0] >= '0' && cell[0] <= '9') ||
         (cell.size() > 1 && cell[0] == '-' && cell[1] >= '0' && cell[1] <= '9');
}

/// Columns in which every cell begins as a number does.
std::vector<bool> number_columns(const Table& table) {
  std::vector<bool> numbers(table.columns.size(), !table.rows.empty());
  for (const auto& row : table.rows)
    for (std::size_t i = 0; i < numbers.size() && i < row.size(); ++i)
      numbers[i] = numbers[i] && is_number(row[i]);
  return numbers;
}

/// Whether a spreadsheet takes a cell that begins like this for a formula, and may run it.
bool is_formula(std::string_view text) {
  constexpr std::array kBegins = {"=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠"};
  return !parse_number(text) &&
         std::ranges::any_of(kBegins, [&](const char* begin) { return text.starts_with(begin); });
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? "\"\"" : std::string(1, c);
  return cell + "\"";
}

void append_csv(std::string& text, std::string_view cell, bool is_first, bool raw) {
  if (!is_first) text += ',';
  text += csv_cell(!raw && is_formula(cell) ? "'" + std::string(cell) : std::string(cell));
}

}  // namespace

std::string to_text(const Table& table, const View& view) {
  Layout layout = layout_of(table);
  const auto shown = fit_columns(table, layout, view.width);
  std::string text;
  for (const auto& row : layout.rows) {
    std::string line;
    for (const auto i : shown) {
      const std::string shown_cell = cut(row[i], layout.widths[i]);
      const std::string pad(layout.widths[i] - cells(shown_cell), ' ');
      const bool is_state = view.has_colours && table.columns[i].name == "state";
      const std::string cell = is_state ? state_in_colour(shown_cell) : shown_cell;
      line += layout.right[i] ? pad + cell : cell + pad;
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string to_html(const Table& table) {
  const auto numbers = number_columns(table);
  std::string html = "<table tabindex=\"0\">\n<thead><tr>";  // it may scroll
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    html += fmt::format("<th scope=\"col\"{}>{}</th>", numbers[i] ? " class=\"n\"" : "",
                        html_escape(heading(table.columns[i])));
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      html += fmt::format("<td{}>{}</td>", numbers[i] ? " class=\"n\"" : "",
                          html_escape(i < row.size() ? row[i] : ""));
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table>\n";
}

std::string to_markdown(const Table& table) {
  const auto numbers = number_columns(table);
  std::string text = "|", rule = "|";
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    text += " " + markdown_escape(heading(table.columns[i])) + " |";
    rule += numbers[i] ? " ---: |" : " --- |";
  }
  text += "\n" + rule + "\n";
  for (const auto& row : table.rows) {
    text += "|";
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      text += " " + markdown_escape(i < row.size() ? row[i] : "") + " |";
    text += "\n";
  }
  return text + "\n";
}

std::string to_csv(const Table& table, bool raw) {
  std::string text;
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    append_csv(text, table.columns[i].name, i == 0, raw);
  text += '\n';
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) append_csv(text, row[i], i == 0, raw);
    text += '\n';
  }
  return text;
}

std::string state_in_colour(std::string_view state) {
  constexpr auto kStateColours = std::to_array<std::pair<std::string_view, int>>({
      {"done", 32},
      {"failed", 31},
      {"lost", 31},
      {"running", 34},
      {"stopped", 33},
      {"interrupted", 33},
  });
  for (const auto& [name, colour] : kStateColours)
    if (state == name || state.starts_with(std::string(name) + " ") ||
        state.starts_with(std::string(name) + ","))
      return "\033[" + std::to_string(colour) + "m" + std::string(state) + "\033[0m";
  return std::string(state);
}

}  // namespace berth::render
