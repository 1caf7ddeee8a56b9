// A writer of JSON text, for whatever is written field by field: messages, lines of the log, what
// commands print. It writes what it is told in that order, keeps nothing but the text, and places
// the separators itself.
//
//   JsonWriter json;
//   json.object().add("name", "a").key("sizes").array().value(1).value(2).end().end();
//   json.take();  // {"name":"a","sizes":[1,2]}
//
// Everything here is pure and does not fail. Who opens an object or an array must end it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace berth {

class JsonWriter {
 public:
  enum class Style : std::uint8_t {
    dense,   ///< {"a":1,"b":2}, one line
    spaced,  ///< {"a": 1, "b": 2}, with lines where line() asks for them
  };
  explicit JsonWriter(Style style = Style::dense) : spaced_(style == Style::spaced) {
    constexpr std::size_t kUsual = 256;  // bytes of a line
    text_.reserve(kUsual);
  }

  JsonWriter& object() { return open('{', '}'); }
  JsonWriter& array() { return open('[', ']'); }
  /// Ends the innermost object or array.
  JsonWriter& end();

  /// The next value belongs to this name, a text in UTF-8.
  JsonWriter& key(std::string_view name);
  /// The text in UTF-8; bytes that are none become '?'.
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool truth) { return raw(truth ? "true" : "false"); }
  /// In the fewest digits that mean exactly this number; null where it is none.
  JsonWriter& value(double number);
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  JsonWriter& value(Number number) {
    return integer(static_cast<std::int64_t>(number));
  }
  /// Any bytes, each as the character of that number (U+0000 to U+00FF): plain text stays plain.
  JsonWriter& bytes(std::string_view bytes);
  /// What is JSON already.
  JsonWriter& raw(std::string_view json);

  template <class Value>
  JsonWriter& add(std::string_view name, const Value& value_) {
    return key(name).value(value_);
  }
  /// An array of what value() takes.
  template <class List>
  JsonWriter& list(const List& values) {
    array();
    for (const auto& each : values) value(each);
    return end();
  }

  /// The next value, name or end stands on a line of its own, behind so many blanks.
  JsonWriter& line(int indent) {
    indent_ = indent;
    return *this;
  }
  /// The text; the writer is empty afterwards.
  std::string take();

 private:
  JsonWriter& open(char begin, char end);
  JsonWriter& integer(std::int64_t number);
  void begin_value();
  void quote(std::string_view text);
  void break_line();

  std::string text_, ends_;  // of what is open, the innermost last
  int indent_ = -1;          // asked for by line(); -1: none was
  bool spaced_;
  bool separated_ = true;  // no comma goes before the next value
};

}  // namespace berth
