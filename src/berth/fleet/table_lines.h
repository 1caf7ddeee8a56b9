// The lines of a plain table (CSV without quotes) one after another, each cut at its commas: for
// readers that need no copy of the text and say where in it something is wrong. read_csv.cc reads
// tables that other tools wrote, with quotes.
//
// Pure. Ownership: refers to the name and the text.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "berth/base/result.h"

namespace berth::fleet {

class TableLines {
 public:
  TableLines(std::string_view name, std::string_view text) : name_(name), text_(text) {}

  /// Moves to the next line, without its end; false: there is none.
  bool next();
  std::string_view line() const { return line_; }
  std::size_t number() const { return number_; }  // of the line, from 1
  const std::vector<std::string_view>& fields() const { return fields_; }
  /// Errors: invalid, where the line has another number of fields.
  Status expect_fields(std::size_t count) const;
  /// invalid: "name:line:column: wanted …, found '…'".
  std::unexpected<Error> wrong(std::size_t field, std::string_view wanted,
                               std::string_view found) const;

 private:
  std::string_view name_, text_, line_;
  std::vector<std::string_view> fields_;
  std::size_t number_ = 0;
};

}  // namespace berth::fleet
