// Text of separated values (CSV, TSV), read cell by cell. Its readers decide about blanks, empty
// lines, heads and errors.
//
// Pure. Ownership: refers to the text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace berth {

class CsvText {
 public:
  explicit CsvText(std::string_view text, char separator = ',')
      : text_(text), separator_(separator) {}

  void skip_byte_order_mark();
  bool at_end() const { return at_ >= text_.size(); }
  std::size_t line() const { return line_; }                    ///< From 1.
  std::size_t column() const { return at_ - line_begin_ + 1; }  ///< In bytes, from 1.
  std::string_view rest() const { return text_.substr(at_); }

  /// Takes the text up to the next separator or end of line, with a '\r' before the latter.
  std::string_view take_plain();
  /// Takes a value within quotes, in which "" is a quote. nullopt: it is not closed.
  /// Precondition: rest() starts with a quote.
  std::optional<std::string> take_quoted();
  /// Skips the separator or end of line after a cell. Returns true if the row has another cell.
  bool next_cell();

 private:
  void end_line(std::size_t line_end);

  std::string_view text_;
  char separator_;
  std::size_t at_ = 0, line_ = 1, line_begin_ = 0;
};

}  // namespace berth
