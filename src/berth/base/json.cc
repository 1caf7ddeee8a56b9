#include "berth/base/json.h"

#include <nlohmann/json.hpp>

#include "berth/base/json_error.h"
#include "berth/base/json_place.h"
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

Result<Json> parse_json(std::string_view text, JsonComments comments) {
  bool too_deep = false;
  const auto bounded = [&](int depth, Json::parse_event_t event, Json&) {
    const bool opens =
        event == Json::parse_event_t::array_start || event == Json::parse_event_t::object_start;
    if (opens && depth >= kDeepestJson) too_deep = true;
    return !too_deep;
  };
  try {
    constexpr bool kThrows = true;
    Json value = Json::parse(text, bounded, kThrows, comments == JsonComments::skipped);
    if (too_deep) return fail(ErrorKind::invalid, "JSON nested more than {} deep", kDeepestJson);
    return value;
  } catch (const Json::parse_error& error) {
    return fail(ErrorKind::invalid, "not JSON: {}",
                explain_json_error(text, error.byte, error.what()));
  } catch (const Json::exception& error) {  // a number that no double holds
    return fail(ErrorKind::invalid, "not JSON: {}", without_library_tag(error.what()));
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

Result<JsonPlace> JsonPlace::parse(std::string_view text) {
  BERTH_ASSIGN(Json json, parse_json(text));
  auto document = std::make_shared<const Json>(std::move(json));
  const Json& root = *document;
  return JsonPlace(std::move(document), root, {});
}

bool JsonPlace::is_map() const {
  return value_->is_object();
}
bool JsonPlace::is_list() const {
  return value_->is_array();
}
bool JsonPlace::is_number() const {
  return value_->is_number();
}
bool JsonPlace::is_text() const {
  return value_->is_string();
}

std::optional<JsonPlace> JsonPlace::find(std::string_view path) const {
  const Json* at = value_;
  for (const auto key : split(path, '.')) {
    if (!at->is_object()) return std::nullopt;
    const auto found = at->find(key);
    if (found == at->end() || found->is_null()) return std::nullopt;
    at = &*found;
  }
  return JsonPlace(document_, *at, fmt::format("{}{}{}", path_, path_.empty() ? "" : ".", path));
}

Result<JsonPlace> JsonPlace::get(std::string_view path) const {
  auto found = find(path);
  if (!found) return error(fmt::format("there is no '{}'", path));
  return *std::move(found);
}

Result<std::vector<JsonPlace>> JsonPlace::items(std::size_t most) const {
  if (!is_list()) return wanted("a list");
  if (value_->size() > most)
    return error(fmt::format("{} elements, at most {} can be", value_->size(), most));
  std::vector<JsonPlace> items;
  items.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i)
    items.push_back(JsonPlace(document_, (*value_)[i], fmt::format("{}[{}]", path_, i)));
  return items;
}

Result<double> JsonPlace::number() const {
  if (!value_->is_number()) return wanted("a number");
  return value_->get<double>();
}

Result<double> JsonPlace::number(std::string_view path) const {
  BERTH_ASSIGN(const JsonPlace at, get(path));
  return at.number();
}

Result<double> JsonPlace::number_or(std::string_view path, double otherwise) const {
  const auto at = find(path);
  return at ? at->number() : otherwise;
}

Result<std::string> JsonPlace::text() const {
  if (!value_->is_string()) return wanted("text");
  return value_->get<std::string>();
}

Result<std::vector<double>> JsonPlace::numbers(std::size_t most) const {
  if (!is_list()) return wanted("a list of numbers");
  if (value_->size() > most)
    return error(fmt::format("{} elements, at most {} can be", value_->size(), most));
  std::vector<double> numbers;
  numbers.reserve(value_->size());
  for (const Json& each : *value_) {
    if (!each.is_number())
      return JsonPlace(document_, each, fmt::format("{}[{}]", path_, numbers.size()))
          .wanted("a number");
    numbers.push_back(each.get<double>());
  }
  return numbers;
}

std::unexpected<Error> JsonPlace::error(std::string_view message) const {
  return fail(ErrorKind::invalid, "{}{}{}", path_, path_.empty() ? "" : ": ", message);
}

std::unexpected<Error> JsonPlace::wanted(std::string_view what) const {
  constexpr std::size_t kMostShown = 60;
  const std::string found = value_->is_object()  ? "a map"
                            : value_->is_array() ? "a list"
                                                 : clip(dump(*value_), kMostShown);
  return error(fmt::format("wanted {}, found {}", what, found));
}

Json parsed_or_null(const std::string& text) {
  const auto value = text.empty() ? Result<Json>(Json(nullptr)) : parse_json(text);
  return value ? *value : Json(nullptr);
}

}  // namespace berth
