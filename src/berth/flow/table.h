// Tables that a foreach goes over: the rows of a .csv (comma, quotes as spreadsheets write them) or
// .tsv (tabulator, no quotes) file, the first row of which names the columns. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"

namespace berth::flow {

inline constexpr std::size_t kMostTableBytes = 16U << 20;

struct Table {
  std::vector<std::string> columns;            // distinct, none empty
  std::vector<std::vector<std::string>> rows;  // each as long as `columns`
};

/// Reads the text of the file named `file`, whose ending says how its fields are separated. Empty
/// lines are left out. Errors: invalid, with file, line and column, for a row that is longer or
/// shorter than the first, a column that comes twice, a quote that is not closed, or a field that
/// is no text.
Result<Table> read_table(std::string_view text, const std::string& file);

}  // namespace berth::flow
