// Text tables.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace berth::cli {

/// How many rows a summary has at most; another command, or --json, shows all.
inline constexpr std::size_t kMostRows = 20;

/// A table whose columns are as wide as their widest cell, with two blanks between them; columns of
/// numbers are aligned to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : rows_{std::move(head)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() == 1; }  ///< Whether it has no row but its head.
  /// The rows in lines. `coloured`: states in the column "state" have the colours of
  /// colour_of_state().
  std::string text(bool coloured = false) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// Prints the table, in colours where has_colours().
void print(const Table& table);

/// Ascending numbers with their ranges, such as "0-3,8".
std::string ranges_text(const std::vector<int>& numbers);

}  // namespace berth::cli
