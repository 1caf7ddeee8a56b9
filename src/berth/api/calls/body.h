// The body of a request: a JSON object, whose values are read into variables. Pure.
//
// Failure: invalid; the message names the key.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "berth/base/document.h"

namespace berth::api {

/// A key of a body and the variable that receives its value. A key that is absent or null leaves
/// the variable unchanged. The caller itself reads a key without a variable.
struct BodyKey {
  std::string_view name;
  std::variant<std::monostate, std::string*, std::optional<std::string>*, bool*, int*,
               std::optional<Duration>*, std::vector<std::string>*>
      to = {};
  bool is_required = false;
};

/// Reads the values of these keys and returns the body. The text "" is an empty object. Errors:
/// invalid JSON, another key, a missing key, a value of another type.
Result<Field> read_body(std::string_view json, const std::vector<BodyKey>& keys);

/// Reads one of the names of an enumeration.
template <class Enum, std::size_t kCount>
Status read_choice(const Field& body, std::string_view key, const Names<Enum, kCount>& names,
                   Enum& to) {
  if (const auto field = body.find(key)) {
    BERTH_ASSIGN(to, field->choice(names));
  }
  return {};
}

}  // namespace berth::api
