// What a file format takes, as tables: which keys a map has, what each may hold, what it means and
// what holds without it. Readers take the keys that they accept from these tables
// (Field::expect_keys), and json_schema() makes of the same tables what editors check a file with.
//
//   inline constexpr KeyFormat kGoalKeys[] = {
//       {"metric", text(), "the metric that counts", "", true},
//       {"direction", one_of(kDirections), "whether the greatest or the least is best", "max"}};
//   inline constexpr MapFormat kGoal{"goal", "what a search is after", kGoalKeys};
//
// Tables are constants that refer to each other and live as long as the program. Everything here is
// pure and does not fail.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace berth {

struct MapFormat;

/// What a value may be. The functions below make one.
struct ValueFormat {
  enum class Kind : std::uint8_t {
    any,       ///< Whatever it is.
    text,      ///< Any scalar, taken as it is written.
    string,    ///< A string of JSON.
    whole,     ///< A whole number within bounds.
    number,    ///< A number within bounds.
    flag,      ///< true or false.
    duration,  ///< 90s, 10m, 1h30m.
    amount,    ///< 2, 1.5, 10G.
    nothing,   ///< Nothing behind the key: declared, and given elsewhere.
    choice,    ///< One of `choices`.
    list,      ///< At least `least` and at most `most` values like `of`.
    entries,   ///< A map from any names to values like `of`.
    map,       ///< The map `keys`.
    either,    ///< Like any of `alternatives`.
  };
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();

  Kind kind = Kind::text;
  double least = -kUnbounded, most = kUnbounded;  // both included,
  bool between = false;                           // or both excluded
  std::span<const std::string_view> choices{};
  const ValueFormat* of = nullptr;
  const MapFormat* keys = nullptr;
  std::span<const ValueFormat> alternatives{};
};

/// One key of a map.
struct KeyFormat {
  std::string_view name;
  ValueFormat value;
  std::string_view meaning;       // one line, in Markdown
  std::string_view without = {};  // what holds where the key is missing; empty: nothing to tell
  bool required = false;
};

/// A map whose keys are listed.
struct MapFormat {
  std::string_view name;  // in the schema, unique within a format
  std::string_view meaning;
  std::span<const KeyFormat> keys;
  const ValueFormat* others = nullptr;  // what any other key holds; nullptr: there is none
  bool notes_others = false;            // other keys are passed over with a note, and are no errors
  std::span<const std::string_view> any_of = {};  // at least one of these keys is there
};

namespace format {

using Kind = ValueFormat::Kind;

constexpr ValueFormat text() {
  return {};
}
constexpr ValueFormat any() {
  return {.kind = Kind::any};
}
constexpr ValueFormat string() {
  return {.kind = Kind::string};
}
constexpr ValueFormat flag() {
  return {.kind = Kind::flag};
}
constexpr ValueFormat duration() {
  return {.kind = Kind::duration};
}
constexpr ValueFormat amount() {
  return {.kind = Kind::amount};
}
constexpr ValueFormat nothing() {
  return {.kind = Kind::nothing};
}
constexpr ValueFormat whole(double least, double most) {
  return {.kind = Kind::whole, .least = least, .most = most};
}
constexpr ValueFormat number(double least = -ValueFormat::kUnbounded,
                             double most = ValueFormat::kUnbounded) {
  return {.kind = Kind::number, .least = least, .most = most};
}
/// Above `least` and below `most`.
constexpr ValueFormat number_between(double least, double most = ValueFormat::kUnbounded) {
  return {.kind = Kind::number, .least = least, .most = most, .between = true};
}
constexpr ValueFormat one_of(std::span<const std::string_view> choices) {
  return {.kind = Kind::choice, .choices = choices};
}
constexpr ValueFormat list_of(const ValueFormat& item, double least = 0,
                              double most = ValueFormat::kUnbounded) {
  return {.kind = Kind::list, .least = least, .most = most, .of = &item};
}
constexpr ValueFormat entries_of(const ValueFormat& value) {
  return {.kind = Kind::entries, .of = &value};
}
constexpr ValueFormat map_of(const MapFormat& map) {
  return {.kind = Kind::map, .keys = &map};
}
constexpr ValueFormat either(std::span<const ValueFormat> alternatives) {
  return {.kind = Kind::either, .alternatives = alternatives};
}

inline constexpr ValueFormat kText = text();
inline constexpr ValueFormat kTexts = list_of(kText);
inline constexpr ValueFormat kTextOrTexts[] = {text(), list_of(kText, 1)};

}  // namespace format

/// The JSON Schema (draft 2020-12) of files whose value is the map `root`, in lines, with a line
/// feed at its end. A key that is not required may also be null, as readers take it for missing.
std::string json_schema(std::string_view title, const MapFormat& root);

}  // namespace berth
