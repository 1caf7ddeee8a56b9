#include "berth/api/calls/body.h"

#include <limits>

#include "berth/base/json.h"
#include "berth/base/units.h"

namespace berth::api {
namespace {

Status read_value(const Field&, std::monostate) {
  return {};
}

Status read_value(const Field& value, std::string* to) {
  BERTH_ASSIGN(*to, value.text());
  return {};
}

Status read_value(const Field& value, std::optional<std::string>* to) {
  BERTH_ASSIGN(*to, value.text());
  return {};
}

Status read_value(const Field& value, int* to) {
  BERTH_ASSIGN(const std::int64_t number, value.integer());
  if (number < std::numeric_limits<int>::min() || number > std::numeric_limits<int>::max())
    return value.error("out of range");
  *to = static_cast<int>(number);
  return {};
}

Status read_value(const Field& value, bool* to) {
  BERTH_ASSIGN(const std::string text, value.text());
  if (text != "true" && text != "false") return value.error("expected true or false");
  *to = text == "true";
  return {};
}

/// An age such as "7d".
Status read_value(const Field& value, std::optional<Duration>* to) {
  BERTH_ASSIGN(const std::string text, value.text());
  const auto age = parse_age(text);
  if (!age) return value.error(age.error());
  *to = *age;
  return {};
}

Status read_value(const Field& value, std::vector<std::string>* to) {
  BERTH_ASSIGN(const auto items, value.items());
  for (const auto& item : items) {
    BERTH_ASSIGN(to->emplace_back(), item.text());
  }
  return {};
}

}  // namespace

Result<Field> read_body(std::string_view json, const std::vector<BodyKey>& keys) {
  BERTH_ASSIGN(const std::string text, compact_json(json.empty() ? "{}" : json));
  BERTH_ASSIGN(Field body, Field::parse(text, "request"));
  std::vector<KeyFormat> known;
  for (const auto& key : keys) known.push_back({.name = key.name, .value = {}, .meaning = {}});
  BERTH_TRY(body.expect_keys(MapFormat{.name = {}, .meaning = {}, .keys = known}));
  for (const auto& [name, to, is_required] : keys) {
    if (is_required) BERTH_TRY(body.get(name));
    if (const auto value = body.find(name))
      BERTH_TRY(std::visit([&](auto variable) { return read_value(*value, variable); }, to));
  }
  return body;
}

}  // namespace berth::api
