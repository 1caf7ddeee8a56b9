// Tables as data, and their forms as text, CSV, Markdown and HTML. Cells are plain text: each form
// escapes what its readers would interpret.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace berth::render {

/// The maximum number of rows of a summary; another command, or --json, shows all.
inline constexpr std::size_t kMostRows = 20;

/// How text is laid out for a terminal.
struct View {
  int width = 0;             ///< Columns of the terminal; 0: unlimited.
  bool has_colours = false;  ///< States are coloured (state_in_colour()).
};

/// One column of a table.
struct Column {
  enum class Align : std::uint8_t { by_content, left, right };  ///< Numbers are aligned right.
  static constexpr int kCut = -1;                               ///< As `drop`.

  // Most columns have a name alone.
  Column(std::string title) : name(std::move(title)) {}  // NOLINT(google-explicit-constructor)
  Column(const char* title) : name(title) {}             // NOLINT(google-explicit-constructor)
  Column(std::string title, int drop_order) : name(std::move(title)), drop(drop_order) {}
  Column(std::string title, std::string of_values, int drop_order = 0)
      : name(std::move(title)), unit(std::move(of_values)), drop(drop_order) {}

  std::string name;
  std::string unit{};  ///< Follows the name in the heading, such as "ms"; "": no unit.
  Align align = Align::by_content;
  /// In a text wider than the view, columns with the highest number are left out first; 0: never.
  /// Where that does not suffice, the cells of columns with kCut are cut, the widest column first.
  int drop = 0;
};

struct Table {
  Table() = default;
  explicit Table(std::vector<Column> head, std::vector<std::vector<std::string>> body = {})
      : columns(std::move(head)), rows(std::move(body)) {}

  /// Adds a row, which has a cell for each column.
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
  bool empty() const { return rows.empty(); }

  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

/// A column whose cells are a function of a row's data. A list of fields describes a table once for
/// all of its forms.
template <typename Row>
struct Field {
  Column column;
  std::function<std::string(const Row&)> text;
};

template <typename Row>
Table table_of(const std::vector<Field<Row>>& fields, const std::vector<Row>& data) {
  Table table;
  for (const auto& field : fields) table.columns.push_back(field.column);
  for (const auto& each : data) {
    auto& row = table.rows.emplace_back();
    for (const auto& field : fields) row.push_back(field.text(each));
  }
  return table;
}

/// Lines whose columns are as wide as their widest cell, with two blanks between them.
std::string to_text(const Table& table, const View& view = {});
std::string to_markdown(const Table& table);
std::string to_html(const Table& table);
/// CSV with the columns' names as its first line. An apostrophe precedes text that a spreadsheet
/// would run as a formula, unless `raw`.
std::string to_csv(const Table& table, bool raw);

/// The name of a state in its colour: done green, failed and lost red, running blue, stopped and
/// interrupted yellow. A cause may follow the name: "failed (exit 3)".
std::string state_in_colour(std::string_view state);

/// Refers to a result. Through this type, argument-dependent lookup finds the overloads of
/// to_json() and to_text() in this namespace, wherever the result's type is declared.
template <typename Result>
struct Shown {
  const Result& result;
  operator const Result&() const { return result; }  // NOLINT(google-explicit-constructor)
};

}  // namespace berth::render
