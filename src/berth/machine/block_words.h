// The words that the text of a block and the lines of the ledger are made of. Pure.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::machine {

inline constexpr std::size_t kLabelMost = 200;  ///< Bytes of a label or a UUID.

inline void append_number(std::string& text, std::int64_t number, char after) {
  const fmt::format_int digits(number);
  text.append(digits.data(), digits.size());
  text += after;
}

/// Appends the label with blanks, control characters, ',' and '%' as %XX.
void append_escaped(std::string& text, std::string_view label);
/// What append_escaped() has written; nullopt: it is malformed, or longer than kLabelMost.
std::optional<std::string> unescaped(std::string_view text);

/// Reads the whole of `text` as a number in [least, most]; false: it is none.
template <class Number>
bool read_number(std::string_view text, std::int64_t least, std::int64_t most, Number& number) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (value < least || value > most) return false;
  number = static_cast<Number>(value);
  return true;
}

}  // namespace berth::machine
