// A value of a fleet document and where it stands, and the readers of single values. For
// document.cc.
#pragma once

#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <variant>

#include "berth/base/json.h"
#include "berth/base/text.h"
#include "berth/fleet/fleet.h"
#include "berth/fleet/model/names.h"

namespace berth::fleet {

/// A value and where it stands, as a chain to the document's root: spelt out only for an error.
struct Place {
  const Json* value = nullptr;
  const Place* parent = nullptr;
  std::string key;
  std::size_t index = 0;  // where `key` is empty

  std::string path() const {
    if (parent == nullptr) return {};
    if (key.empty()) return fmt::format("{}[{}]", parent->path(), index);
    const std::string before = parent->path();
    return before.empty() ? key : before + "." + key;
  }
  /// Whether the object has the key, in any case, with a value.
  bool has(std::string_view wanted) const {
    for (const auto& [name, item] : value->items())
      if (lower(name) == wanted && !item.is_null()) return true;
    return false;
  }
  std::unexpected<Error> error(std::string_view message) const {
    const std::string where = path();
    return fail(ErrorKind::invalid, "{}{}{}", where, where.empty() ? "" : ": ", message);
  }
  std::unexpected<Error> wanted(std::string_view what) const {
    return error(fmt::format("expected {}, got {}", what, clip(dump(*value), 60)));
  }
};

template <class Number>
Status read_number(const Place& at, Number& to) {
  if (!at.value->is_number()) return at.wanted("a number");
  const auto number = at.value->get<double>();
  if constexpr (std::is_integral_v<Number>) {
    if (number != std::floor(number)) return at.wanted("a whole number");
    if (std::abs(number) > 2e9) return at.wanted("a smaller number");
  }
  to = static_cast<Number>(number);
  return {};
}

inline Status read_into(const Place& at, double* to) {
  return read_number(at, *to);
}
inline Status read_into(const Place& at, int* to) {
  return read_number(at, *to);
}
inline Status read_into(const Place& at, std::int64_t* to) {
  return read_number(at, *to);
}
inline Status read_into(const Place& at, bool* to) {
  if (!at.value->is_boolean()) return at.wanted("true or false");
  *to = at.value->get<bool>();
  return {};
}
inline Status read_into(const Place& at, std::string* to) {
  if (!at.value->is_string()) return at.wanted("text");
  *to = at.value->get<std::string>();
  if (to->size() > 1000) return at.error("longer than 1000 bytes");
  return {};
}
/// Reads one of the names; "" is the first.
template <class Choice, std::size_t kCount>
Status read_choice(const Place& at, const Names<Choice, kCount>& names, Choice& to) {
  std::string text;
  BERTH_TRY(read_into(at, &text));
  const auto& all = names.all();
  const auto found = choice(names, text.empty() ? all[0] : text);
  if (!found)
    return at.wanted("one of " + join(std::vector<std::string>(all.begin(), all.end()), ", "));
  to = *found;
  return {};
}

/// How a key without a member is read.
struct OtherKey {
  std::string_view name;
  std::function<Status(const Place&)> read;
};
template <class Value>
OtherKey read_to(std::string_view name, Value& to) {
  return {name, [&to](const Place& at) { return read_into(at, &to); }};
}

}  // namespace berth::fleet
