// A struct that is described once: its record lists its keys, each with the member that holds the
// value, and what the value means. Readers, writers and JSON Schemas follow from the record.
//
//   struct Power { double idle_w = 0, full_w = 0; };
//   inline constexpr Record kPower{
//       "power", "A power curve.",
//       key("idle", &Power::idle_w, number(0, 1e12), "watts without load", "0"),
//       key("full", &Power::full_w, number(0, 1e12), "watts at full use", "0")};
//   template <>
//   inline constexpr const auto& kRecordOf<Power> = kPower;
//
//   kPower.for_each([&](const auto& each) { print(each.format.name, each.in(power)); });
//
// A record of a file has formats and defaults, which the reader checks; a record of an answer needs
// none, as its schema follows from the types. Records are constants and live as long as the
// program.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "berth/base/format.h"
#include "berth/base/result.h"

namespace berth {

/// In place of a member: the reader and the writer of the struct handle the key themselves.
struct NoMember {};

/// A key of a struct. `At` is a pointer to the member, or a function of the object.
template <class At>
struct RecordKey {
  static constexpr bool kHasMember = !std::is_same_v<At, NoMember>;

  KeyFormat format;
  At at = {};
  bool is_optional = false;  ///< It is only written if its value is not the default one.

  template <class Struct>
  constexpr decltype(auto) in(Struct& object) const {
    return std::invoke(at, object);
  }
};

/// A key of a file. `absent` says in words what applies without it.
template <class At>
constexpr RecordKey<At> key(std::string_view name, At at, ValueFormat value,
                            std::string_view meaning, std::string_view absent = {}) {
  return {{name, value, meaning, absent}, at};
}
template <class At>
constexpr RecordKey<At> optional_key(std::string_view name, At at, ValueFormat value,
                                     std::string_view meaning, std::string_view absent = {}) {
  return {{name, value, meaning, absent}, at, true};
}
template <class At>
constexpr RecordKey<At> required_key(std::string_view name, At at, ValueFormat value,
                                     std::string_view meaning) {
  return {{name, value, meaning, "", true}, at};
}
constexpr RecordKey<NoMember> required_key(std::string_view name, ValueFormat value,
                                           std::string_view meaning) {
  return {{name, value, meaning, "", true}};
}
constexpr RecordKey<NoMember> other_key(std::string_view name, ValueFormat value,
                                        std::string_view meaning, std::string_view absent = {}) {
  return {{name, value, meaning, absent}};
}

/// A key of an answer or a request; an optional one may be absent.
template <class At>
constexpr RecordKey<At> key(std::string_view name, At at, std::string_view meaning = {}) {
  return {{name, format::any(), meaning}, at};
}
template <class At>
constexpr RecordKey<At> optional_key(std::string_view name, At at, std::string_view meaning = {}) {
  return {{name, format::any(), meaning}, at, true};
}
/// A key of a request: `choices` are the only values that it may have.
template <class At>
constexpr RecordKey<At> optional_key(std::string_view name, At at,
                                     std::span<const std::string_view> choices,
                                     std::string_view meaning = {}) {
  return {{name, format::one_of(choices), meaning}, at, true};
}
constexpr auto version_key() {
  return key("version", [](const auto&) { return 1; });
}

/// The member of a member.
template <auto kOuter, auto kInner>
inline constexpr auto inner =
    [](auto& object) -> auto& { return std::invoke(kInner, std::invoke(kOuter, object)); };
/// The member of a result or an optional member; nullopt without it.
template <auto kResult, auto kInner>
inline constexpr auto if_present = [](const auto& object) {
  const auto& result = std::invoke(kResult, object);
  using Inner = std::remove_cvref_t<decltype(std::invoke(kInner, *result))>;
  return result ? std::optional<Inner>(std::invoke(kInner, *result)) : std::nullopt;
};
/// The message of the error of a result; nullopt without one.
template <auto kResult>
inline constexpr auto error_of = [](const auto& object) {
  const auto& result = std::invoke(kResult, object);
  return result ? std::nullopt : std::optional<std::string>(result.error().message);
};

template <class... Ats>
struct Record {
  std::string_view name, meaning;  ///< As in schemas.
  std::array<KeyFormat, sizeof...(Ats)> formats;
  std::tuple<RecordKey<Ats>...> keys;

  constexpr Record(std::string_view its_name, std::string_view its_meaning,
                   const RecordKey<Ats>&... all)
      : name(its_name), meaning(its_meaning), formats{all.format...}, keys(all...) {}

  /// Calls visit(key) for each key, in order.
  template <class Visit>
  constexpr void for_each(const Visit& visit) const {
    std::apply([&](const auto&... each) { (visit(each), ...); }, keys);
  }
  /// Returns visit(key) for the key of this position, which must exist.
  template <class Visit>
  Status visit(std::size_t position, const Visit& visit) const {
    Status status;
    std::size_t i = 0;
    for_each([&](const auto& each) {
      if (i++ == position) status = visit(each);
    });
    return status;
  }
};

struct Undescribed {};
/// The record of a struct, and the names of an enumeration, which specializations define.
template <class Struct>
inline constexpr Undescribed kRecordOf{};
template <class Enum>
inline constexpr Undescribed kNamesOf{};

template <class Struct>
inline constexpr bool kHasRecord =
    !std::is_same_v<std::remove_cvref_t<decltype(kRecordOf<Struct>)>, Undescribed>;
template <class Enum>
inline constexpr bool kHasNames =
    !std::is_same_v<std::remove_cvref_t<decltype(kNamesOf<Enum>)>, Undescribed>;

}  // namespace berth
