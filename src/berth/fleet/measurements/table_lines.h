// The lines of a plain table (CSV without quotes) one after another, each cut at its commas: for
// readers that need no copy of the text and say where in it something is wrong. read_csv.cc reads
// tables that other tools wrote, with quotes.
//
// Pure. Ownership: refers to the name and the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "berth/base/csv.h"
#include "berth/base/result.h"

namespace berth::fleet {

class TableLines {
 public:
  static constexpr std::size_t kNoColumn = SIZE_MAX;

  /// A byte order mark at the head of the text is passed over.
  TableLines(std::string_view name, std::string_view text);

  /// Reads the first line, which names the columns in any order and case. It returns where each of
  /// the known ones stands, or kNoColumn. Errors: invalid: one of the first `needed` is missing,
  /// one stands there twice, or one is not known and others are not passed over.
  enum class Others : std::uint8_t { passed_over, refused };
  Result<std::vector<std::size_t>> read_head(std::span<const std::string_view> known,
                                             std::size_t needed, Others others);

  /// Moves to the next line, without its end; false: there is none.
  bool next();
  std::string_view line() const { return line_; }
  std::size_t number() const { return number_; }  // of the line, from 1
  const std::vector<std::string_view>& fields() const { return fields_; }
  /// Errors: invalid, where the line has another number of fields than the first one.
  Status expect_all_fields() const;
  /// invalid: "name:line:column: wanted …, found '…'".
  std::unexpected<Error> wrong(std::size_t field, std::string_view wanted,
                               std::string_view found) const;

 private:
  CsvText text_;
  std::string_view name_, line_;
  std::vector<std::string_view> fields_;
  std::size_t number_ = 0, width_ = 0;  // width: the number of columns
};

}  // namespace berth::fleet
