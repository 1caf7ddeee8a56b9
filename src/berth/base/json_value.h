// One value of a small JSON document, for those who want no more of it. Pure; in json.cc.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "berth/base/result.h"

namespace berth {

/// A number, a text, true, false or null.
struct JsonValue {
  std::string text;              // as JSON writes it, a text without its quotes
  std::optional<double> number;  // where it is one
};

/// The value under a key of a map (or the number of an element of a list, from 0), and so on
/// within that. Errors: invalid: the text is not JSON; there is no such key, whose nearest is
/// named; what is there is a map or a list.
Result<JsonValue> json_value_at(std::string_view text, std::span<const std::string> keys);

}  // namespace berth
