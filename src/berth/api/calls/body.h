// The body of a request: a JSON object, which is read into structs that have records.
#pragma once

#include <string_view>

#include "berth/base/json.h"
#include "berth/base/record_document.h"
#include "berth/base/record_json.h"
#include "berth/base/units.h"

namespace berth::api {

/// Reads a body that has the keys of these structs and no others. The text "" is an empty object.
/// Errors: invalid, with the key.
template <class... Structs>
Status read_body(std::string_view json, Structs&... to) {
  BERTH_ASSIGN(const std::string text, compact_json(json.empty() ? "{}" : json));
  BERTH_ASSIGN(const Field body, Field::parse(text, "request"));
  return read_map(body, to...);
}

/// Reads an age such as "7d". Errors: invalid, with the key.
inline Result<Duration> read_age(std::string_view key_name, const std::string& text) {
  auto age = parse_age(text);
  if (!age) return fail(ErrorKind::invalid, "request: {}: {}", key_name, age.error().message);
  return age;
}

}  // namespace berth::api
