#include "berth/base/json.h"

#include <nlohmann/json.hpp>

#include "berth/base/json_value.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth {
namespace {

constexpr int kDeepestJson = 64;

}  // namespace

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Json> parse_json(std::string_view text) {
  bool too_deep = false;
  const auto bounded = [&](int depth, Json::parse_event_t event, Json&) {
    const bool opens =
        event == Json::parse_event_t::array_start || event == Json::parse_event_t::object_start;
    if (opens && depth >= kDeepestJson) too_deep = true;
    return !too_deep;
  };
  try {
    Json value = Json::parse(text, bounded);
    if (too_deep) return fail(ErrorKind::invalid, "JSON nested more than {} deep", kDeepestJson);
    return value;
  } catch (const Json::exception& error) {
    return fail(ErrorKind::invalid, "not JSON: {}", error.what());
  }
}

Status check_json(std::string_view text) {
  BERTH_TRY(parse_json(text));
  return {};
}

namespace {

constexpr std::size_t kMostNamedKeys = 10;

std::unexpected<Error> no_key(const Json& map, const std::string& key, std::string_view within) {
  std::vector<std::string> keys;
  for (const auto& entry : map.items()) keys.push_back(entry.key());
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  const auto meant = nearest(key, views);
  std::string there;
  for (auto& each : keys) each = clip(each);
  if (keys.size() > kMostNamedKeys) keys.resize(kMostNamedKeys);
  if (!meant.empty())
    there = fmt::format("; did you mean '{}'?", clip(meant));
  else if (!keys.empty())
    there = "; there are " + join(keys, ", ");
  return fail(ErrorKind::invalid, "there is no '{}'{}{}", clip(key), within, there);
}

Result<const Json*> child_at(const Json& value, const std::string& key, std::string_view within) {
  if (value.is_object()) {
    const auto found = value.find(key);
    if (found == value.end()) return no_key(value, key, within);
    return &*found;
  }
  if (!value.is_array())
    return fail(ErrorKind::invalid, "there is no '{}'{}, which is {}", clip(key), within,
                clip(dump(value)));
  const auto index = parse_integer(key);
  if (!index || *index < 0 || static_cast<std::size_t>(*index) >= value.size())
    return fail(ErrorKind::invalid, "there is no '{}'{}, which is a list of {}", clip(key), within,
                value.size());
  return &value[static_cast<std::size_t>(*index)];
}

}  // namespace

Result<JsonValue> json_value_at(std::string_view text, std::span<const std::string> keys) {
  BERTH_ASSIGN(const Json document, parse_json(text));
  const Json* value = &document;
  std::string path;
  for (const auto& key : keys) {
    const std::string within = path.empty() ? "" : fmt::format(" in '{}'", clip(path));
    BERTH_ASSIGN(value, child_at(*value, key, within));
    path += (path.empty() ? "" : ".") + key;
  }
  if (value->is_structured())
    return fail(ErrorKind::invalid, "'{}' is a {}; name a value in it", clip(path),
                value->is_object() ? "map" : "list");
  JsonValue found;
  found.text = value->is_string() ? value->get<std::string>() : dump(*value);
  if (value->is_number()) found.number = value->get<double>();
  return found;
}

}  // namespace berth
