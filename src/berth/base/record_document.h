// Reads maps of documents into structs, by their records.
#pragma once

#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "berth/base/document.h"
#include "berth/base/record.h"

namespace berth {

/// Reads a value. Errors: invalid, with the place in the document.
template <class Value>
Status read_value(const Field& field, Value& to) {
  if constexpr (std::same_as<Value, std::string>) {
    BERTH_ASSIGN(to, field.text());
  } else if constexpr (std::same_as<Value, bool>) {
    BERTH_ASSIGN(const std::string text, field.text());
    if (text != "true" && text != "false") return field.error("expected true or false");
    to = text == "true";
  } else if constexpr (std::integral<Value>) {
    BERTH_ASSIGN(const std::int64_t number, field.integer());
    if (!std::in_range<Value>(number)) return field.error("out of range");
    to = static_cast<Value>(number);
  } else if constexpr (std::floating_point<Value>) {
    BERTH_ASSIGN(to, field.number());
  } else {
    static_assert(kHasNames<Value>);
    BERTH_ASSIGN(to, field.choice(kNamesOf<Value>));
  }
  return {};
}
template <class Value>
Status read_value(const Field& field, std::optional<Value>& to) {
  return read_value(field, to.emplace());
}
template <class Value>
Status read_value(const Field& field, std::vector<Value>& to) {
  BERTH_ASSIGN(const auto items, field.items());
  for (const auto& item : items) BERTH_TRY(read_value(item, to.emplace_back()));
  return {};
}

/// Reads the value of one key. A key that is absent or null leaves its member unchanged, unless it
/// is required.
template <class At, class Struct>
Status read_key(const Field& map, const RecordKey<At>& key, Struct& to) {
  const auto field = map.find(key.format.name);
  if (!field) return key.is_optional ? Status() : std::unexpected(map.get(key.format.name).error());
  if (const auto choices = key.format.value.choices; !choices.empty())
    BERTH_TRY(field->choice(choices));
  return read_value(*field, key.in(to));
}

template <class Struct>
Status read_keys(const Field& map, Struct& to) {
  Status status;
  kRecordOf<Struct>.for_each([&](const auto& key) {
    if constexpr (std::remove_cvref_t<decltype(key)>::kHasMember)
      if (status) status = read_key(map, key, to);
  });
  return status;
}

/// Reads a map that has the keys of these structs and no others. Errors also: an unknown key.
template <class... Structs>
Status read_map(const Field& map, Structs&... to) {
  std::vector<KeyFormat> known;
  (known.insert(known.end(), kRecordOf<Structs>.formats.begin(), kRecordOf<Structs>.formats.end()),
   ...);
  BERTH_TRY(map.expect_keys(MapFormat{.name = {}, .meaning = {}, .keys = known}));
  Status status;
  (void)(... && (status = read_keys(map, to), status.has_value()));
  return status;
}

}  // namespace berth
