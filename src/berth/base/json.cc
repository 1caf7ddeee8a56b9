#include "berth/base/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "berth/base/json_error.h"
#include "berth/base/json_place.h"
#include "berth/base/json_value.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth {
namespace {

constexpr std::size_t kDeepestJson = 64;
constexpr std::size_t kFewKeys = 16;  // up to this number they are compared pair by pair

/// For each entry of a map the last entry with its key; empty if no key is
/// given twice.
std::vector<std::size_t> last_of_each_key(const Json::object_t::Container& entries) {
  std::vector<std::size_t> last;
  const std::size_t count = entries.size();
  bool is_twice = false;
  if (count <= kFewKeys) {
    for (std::size_t i = 0; i < count && !is_twice; ++i)
      for (std::size_t j = 0; j < i && !is_twice; ++j)
        is_twice = entries[i].first == entries[j].first;
    if (!is_twice) return last;
  }
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&](std::size_t i) -> const std::string& { return entries[i].first; };
  std::ranges::stable_sort(order, {}, key);
  is_twice = std::ranges::adjacent_find(order, {}, key) != order.end();
  if (!is_twice) return last;
  last.resize(count);
  for (std::size_t i = count; i-- > 0;)
    last[order[i]] =
        i + 1 < count && key(order[i]) == key(order[i + 1]) ? last[order[i + 1]] : order[i];
  return last;
}

/// Builds a value from the parser's events, in time that is linear in the text
/// (but for sorting the keys of large maps). The library's own builders compare
/// each key with all earlier ones of its map, and look through all earlier
/// elements of a list after each map in it. A key that is given twice has its
/// last value, at its first place.
class JsonBuilder {
 public:
  bool null() { return add(nullptr); }
  bool boolean(bool truth) { return add(truth); }
  bool number_integer(Json::number_integer_t number) { return add(number); }
  bool number_unsigned(Json::number_unsigned_t number) { return add(number); }
  bool number_float(Json::number_float_t number, const std::string&) { return add(number); }
  bool string(std::string& text) { return add(std::move(text)); }
  bool binary(Json::binary_t&) { return false; }  // JSON has none
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool key(std::string& name) {
    entries_of(*open_.back()).emplace_back(std::move(name), Json());
    return true;
  }
  bool end_object() {
    auto& entries = entries_of(*open_.back());
    if (const auto last = last_of_each_key(entries); !last.empty()) {
      Json::object_t::Container once;
      std::vector<bool> is_taken(entries.size());
      for (std::size_t i = 0; i < entries.size(); ++i)
        if (!is_taken[last[i]]) {
          once.emplace_back(entries[i].first, std::move(entries[last[i]].second));
          is_taken[last[i]] = true;
        }
      entries.swap(once);
    }
    return end_array();
  }
  bool end_array() {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&, const Json::exception& error) {
    constexpr int kOutOfRange =
        400;  // the number of the first such error; earlier ones are of syntax
    error_ = error.id < kOutOfRange
                 ? "not JSON: " + explain_json_error(text_, byte, error.what())
                 : fmt::format("not JSON: {}", without_library_tag(error.what()));
    return false;
  }

  explicit JsonBuilder(std::string_view text) : text_(text) {}
  Json& value() { return root_; }
  const std::string& error() const { return error_; }

 private:
  static Json::object_t::Container& entries_of(Json& map) {
    return *map.get_ptr<Json::object_t*>();
  }
  /// The place for the next value. Only the innermost container grows, so that
  /// places of the others stay where they are.
  Json& next() {
    if (open_.empty()) return root_;
    Json& parent = *open_.back();
    return parent.is_array() ? parent.get_ptr<Json::array_t*>()->emplace_back()
                             : entries_of(parent).back().second;
  }
  template <class Value>
  bool add(Value&& value) {
    next() = std::forward<Value>(value);
    return true;
  }
  bool open(Json container) {
    if (open_.size() == kDeepestJson) {
      error_ = fmt::format("JSON nested more than {} deep", kDeepestJson);
      return false;
    }
    Json& place = next();
    place = std::move(container);
    open_.push_back(&place);
    return true;
  }

  const std::string_view text_;
  Json root_;
  std::vector<Json*> open_;  // the innermost last
  std::string error_;
};

}  // namespace

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json& append(Json& map, std::string key, Json value) {
  Json::object_t::Container& entries = *map.get_ptr<Json::object_t*>();
  return entries.emplace_back(std::move(key), std::move(value)).second;
}

Result<Json> parse_json(std::string_view text, JsonComments comments) {
  constexpr bool kIsWhole = true;  // nothing may follow
  JsonBuilder builder(text);
  if (!Json::sax_parse(text.begin(), text.end(), &builder, Json::input_format_t::json, kIsWhole,
                       comments == JsonComments::skipped))
    return fail(ErrorKind::invalid, "{}", builder.error());
  return std::move(builder.value());
}

Result<std::string> compact_json(std::string_view text) {
  BERTH_ASSIGN(const Json value, parse_json(text));
  return dump(value);
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
    return error(fmt::format("expected at most {1} elements, got {0}", value_->size(), most));
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
    return error(fmt::format("expected at most {1} elements, got {0}", value_->size(), most));
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
  return error(fmt::format("expected {}, got {}", what, found));
}

Json parsed_or_null(const std::string& text) {
  const auto value = text.empty() ? Result<Json>(Json(nullptr)) : parse_json(text);
  return value ? *value : Json(nullptr);
}

}  // namespace berth
