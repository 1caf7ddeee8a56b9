// JSON of values by their records, and the JSON Schema of that JSON.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "berth/base/json_writer.h"
#include "berth/base/record.h"

namespace berth {

/// A type that writes itself: to_json(value) returns JSON whose schema has the name
/// kSchemaNameOf<Value>.
template <class Value>
inline constexpr std::string_view kSchemaNameOf{};

namespace record_json {

template <class Value>
concept Optional = requires(const Value& value) {
  value.has_value();
  *value;
};
template <class Value>
concept Text = std::convertible_to<const Value&, std::string_view>;
template <class Value>
concept Map = requires { typename Value::mapped_type; };

}  // namespace record_json

/// Writes the keys of the object, which the caller has begun. An optional key is left out if its
/// value is an optional without a value.
template <class Struct, class... Ats>
void write_keys(JsonWriter& json, const Record<Ats...>& record, const Struct& object);

template <class Value>
void write_json(JsonWriter& json, const Value& value) {
  using namespace record_json;
  if constexpr (!kSchemaNameOf<Value>.empty()) {
    json.raw(to_json(value));
  } else if constexpr (kHasRecord<Value>) {
    json.object();
    write_keys(json, kRecordOf<Value>, value);
    json.end();
  } else if constexpr (kHasNames<Value>) {
    json.value(kNamesOf<Value>.name(value));
  } else if constexpr (Text<Value> || std::is_arithmetic_v<Value>) {
    json.value(value);
  } else if constexpr (Optional<Value>) {
    if (value)
      write_json(json, *value);
    else
      json.raw("null");
  } else if constexpr (Map<Value>) {
    json.object();
    for (const auto& [name, each] : value) write_json(json.key(fmt::format("{}", name)), each);
    json.end();
  } else {
    json.array();
    for (const auto& each : value) write_json(json, each);
    json.end();
  }
}

template <class Struct, class... Ats>
void write_keys(JsonWriter& json, const Record<Ats...>& record, const Struct& object) {
  record.for_each([&](const auto& key) {
    decltype(auto) value = key.in(object);
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (record_json::Optional<Value>) {
      if (key.is_optional && !value) return;
    }
    write_json(json.key(key.format.name), value);
  });
}

/// One line with a line feed, as commands print it.
template <class Struct>
std::string json_line(const Struct& object) {
  JsonWriter json;
  write_json(json, object);
  return json.take() + "\n";
}

/// The schema of a value; that of a struct is a reference to its own.
template <class Value>
void write_schema(JsonWriter& json, std::string_view meaning = {}) {
  using namespace record_json;
  const auto refer = [&](std::string_view name) {
    json.add("$ref", std::string("#/components/schemas/").append(name));
  };
  json.object();
  if constexpr (!kSchemaNameOf<Value>.empty()) {
    refer(kSchemaNameOf<Value>);
  } else if constexpr (kHasRecord<Value>) {
    refer(kRecordOf<Value>.name);
  } else if constexpr (kHasNames<Value>) {
    json.add("type", "string").key("enum").list(kNamesOf<Value>.all());
  } else if constexpr (std::is_same_v<Value, bool>) {
    json.add("type", "boolean");
  } else if constexpr (std::is_integral_v<Value>) {
    json.add("type", "integer");
  } else if constexpr (std::is_floating_point_v<Value>) {
    json.add("type", "number");
  } else if constexpr (Text<Value>) {
    json.add("type", "string");
  } else if constexpr (Optional<Value>) {
    json.key("anyOf").array();
    write_schema<std::remove_cvref_t<decltype(*std::declval<const Value&>())>>(json);
    json.object().add("type", "null").end().end();
  } else if constexpr (Map<Value>) {
    json.add("type", "object").key("additionalProperties");
    write_schema<typename Value::mapped_type>(json);
  } else {
    json.add("type", "array").key("items");
    write_schema<typename Value::value_type>(json);
  }
  if (!meaning.empty()) json.add("description", meaning);
  json.end();
}

/// Adds the schema of a map with the keys of these structs, under the name of the first, to an
/// object of schemas.
template <class Struct, class... More>
void add_schema(JsonWriter& json) {
  const auto for_each_key = [](const auto& visit) {
    const auto of = [&]<class Part>(const Part*) {
      kRecordOf<Part>.for_each([&](const auto& key) {
        using Value = std::remove_cvref_t<decltype(key.in(std::declval<const Part&>()))>;
        visit(key, static_cast<const Value*>(nullptr));
      });
    };
    of(static_cast<const Struct*>(nullptr));
    (of(static_cast<const More*>(nullptr)), ...);
  };
  const auto& record = kRecordOf<Struct>;
  json.key(record.name).object().add("type", "object").add("description", record.meaning);
  json.key("required").array();
  for_each_key([&](const auto& key, const auto*) {
    if (!key.is_optional) json.value(key.format.name);
  });
  json.end().key("properties").object();
  for_each_key([&]<class Value>(const auto& key, const Value*) {
    const auto& [name, value, meaning, absent, is_required] = key.format;
    json.key(name);
    if (!value.choices.empty()) {
      json.object().add("type", "string").key("enum").list(value.choices);
      if (!meaning.empty()) json.add("description", meaning);
      json.end();
    } else if constexpr (record_json::Optional<Value>) {
      using Inner = std::remove_cvref_t<decltype(*std::declval<const Value&>())>;
      key.is_optional ? write_schema<Inner>(json, meaning) : write_schema<Value>(json, meaning);
    } else {
      write_schema<Value>(json, meaning);
    }
  });
  json.end().end();
}

template <class... Structs>
void add_schemas(JsonWriter& json) {
  (add_schema<Structs>(json), ...);
}

}  // namespace berth
