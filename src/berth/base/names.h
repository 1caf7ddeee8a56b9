// The names that an enumeration's values have on the wire, in files and in the store: one table
// gives the name of a value and the value of a name.
//
//   inline constexpr auto kStreamNames = names<Stream>({{Stream::out, "out"}, {Stream::err,
//   "err"}}); kStreamNames.name(Stream::err)   // "err" kStreamNames.value("out")        //
//   Stream::out
//
// The compiler refuses a table whose values do not follow each other, or that names two values
// alike. Everything here is pure and does not fail.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace berth {

template <class Enum>
struct Named {
  Enum value;
  std::string_view name;
};

template <class Enum, std::size_t kCount>
class Names {
 public:
  /// The table is built by names() below.
  explicit consteval Names(const Named<Enum> (&rows)[kCount]) : first_(number(rows[0].value)) {
    for (std::size_t i = 0; i < kCount; ++i) {
      if (number(rows[i].value) != first_ + i) throw "the values do not follow each other";
      if (rows[i].name.empty() || value(rows[i].name)) throw "a name is empty, or is given twice";
      names_[i] = rows[i].name;
    }
  }

  /// The name of the value; empty where the value is none of the table.
  constexpr std::string_view name(Enum value) const {
    const std::size_t i = number(value) - first_;
    return i < kCount ? names_[i] : std::string_view();
  }
  /// The value of exactly that name; nullopt where no value has it.
  constexpr std::optional<Enum> value(std::string_view name) const {
    for (std::size_t i = 0; i < kCount; ++i)
      if (!name.empty() && names_[i] == name) return static_cast<Enum>(first_ + i);
    return std::nullopt;
  }
  /// All names in the order of their values.
  constexpr const std::array<std::string_view, kCount>& all() const { return names_; }

 private:
  static constexpr std::size_t number(Enum value) { return static_cast<std::size_t>(value); }
  std::array<std::string_view, kCount> names_{};
  std::size_t first_;
};

template <class Enum, std::size_t kCount>
consteval Names<Enum, kCount> names(const Named<Enum> (&rows)[kCount]) {
  return Names<Enum, kCount>(rows);
}

/// "sum, min or ring": the names as an error message lists what it wanted.
template <class Enum, std::size_t kCount>
std::string listed(const Names<Enum, kCount>& names) {
  std::string text;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (i > 0) text += i + 1 < kCount ? ", " : " or ";
    text += names.all()[i];
  }
  return text;
}

}  // namespace berth
