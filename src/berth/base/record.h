// A struct that is described once: its record lists its keys, each with the member that holds the
// value, what the value may be, what it means, and what applies if it is absent. Readers, writers
// and JSON Schemas follow from the record.
//
//   struct Power { double idle_w = 0, full_w = 0; };
//   inline constexpr Record kPower{
//       key("idle", &Power::idle_w, number(0, 1e12), "watts without load", "0"),
//       key("full", &Power::full_w, number(0, 1e12), "watts at full use", "0")};
//
//   MapFormat{"power", "A power curve.", kPower.formats};
//   kPower.for_each([&](const auto& each) { print(each.format.name, each.in(power)); });
//
// Records are constants and live as long as the program, as the formats do that refer to them.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "berth/base/format.h"
#include "berth/base/result.h"

namespace berth {

/// In place of a member: the reader and the writer of the struct handle the key themselves.
struct NoMember {};

/// A key of a struct. `At` is a pointer to the member, or a function that returns a reference to
/// it.
template <class At>
struct RecordKey {
  static constexpr bool kHasMember = !std::is_same_v<At, NoMember>;

  KeyFormat format;
  At at = {};
  bool is_sparse = false;  ///< It is written only if its value is not the default one.

  template <class Struct>
  constexpr auto& in(Struct& object) const {
    return std::invoke(at, object);
  }
};

/// A key that is always written. `absent` says what applies without it, in words.
template <class At>
constexpr RecordKey<At> key(std::string_view name, At at, ValueFormat value,
                            std::string_view meaning, std::string_view absent = {}) {
  return {{name, value, meaning, absent}, at};
}
/// A key that is written only if its value is not the default one.
template <class At>
constexpr RecordKey<At> sparse_key(std::string_view name, At at, ValueFormat value,
                                   std::string_view meaning, std::string_view absent = {}) {
  return {{name, value, meaning, absent}, at, true};
}
constexpr RecordKey<NoMember> other_key(std::string_view name, ValueFormat value,
                                        std::string_view meaning, std::string_view absent = {}) {
  return {{name, value, meaning, absent}};
}
/// A key that an entry must have.
constexpr RecordKey<NoMember> required_key(std::string_view name, ValueFormat value,
                                           std::string_view meaning) {
  return {{name, value, meaning, "", true}};
}

template <class At>
constexpr RecordKey<At> required_key(std::string_view name, At at, ValueFormat value,
                                     std::string_view meaning) {
  return {{name, value, meaning, "", true}, at};
}

template <class... Ats>
struct Record {
  std::array<KeyFormat, sizeof...(Ats)> formats;
  std::tuple<RecordKey<Ats>...> keys;

  constexpr explicit Record(const RecordKey<Ats>&... all) : formats{all.format...}, keys(all...) {}

  /// Calls visit(key) for each key, in order.
  template <class Visit>
  constexpr void for_each(Visit&& visit) const {
    std::apply([&](const auto&... each) { (visit(each), ...); }, keys);
  }
  /// Returns visit(key) for the key of this position, which must exist.
  template <class Visit>
  Status visit(std::size_t position, Visit&& visit) const {
    Status status;
    std::size_t i = 0;
    for_each([&](const auto& each) {
      if (i++ == position) status = visit(each);
    });
    return status;
  }
};

}  // namespace berth
