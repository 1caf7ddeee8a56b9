#include <cmath>
#include <initializer_list>
#include <vector>

#include "berth/base/format.h"
#include "berth/base/json_writer.h"
#include "berth/base/result.h"

namespace berth {
namespace {

constexpr std::string_view kDurationPattern =
    R"(^\s*[0-9.]+\s*([A-Za-zµ]+\s*([0-9.]+\s*[A-Za-zµ]+\s*)*)?$)";
constexpr std::string_view kAmountPattern = R"(^\s*[0-9.]+\s*[A-Za-z]*\s*$)";

/// All digits of a bound that is whole, since people read it.
std::string bound_digits(double bound) {
  return bound == std::floor(bound) ? fmt::format("{:.0f}", bound) : fmt::format("{}", bound);
}

class SchemaWriter {
  using Kind = ValueFormat::Kind;

 public:
  std::string write(std::string_view title, const MapFormat& root) {
    json_.object()
        .add("$schema", "https://json-schema.org/draft/2020-12/schema")
        .add("title", title);
    write_map(root);
    json_.line(2).key("$defs").object();
    for (std::size_t i = 0; i < named_.size(); ++i) {  // which grows meanwhile
      indent_ = 4;
      json_.line(indent_).key(named_[i]->name).object();
      write_map(*named_[i]);
      json_.end();
    }
    json_.line(2).end().line(0).end();
    return json_.take() + "\n";
  }

 private:
  /// A reference to the map, which stands among the definitions.
  void refer_to(const MapFormat& map) {
    bool known = false;
    for (const auto* each : named_) known = known || each == &map;
    if (!known) named_.push_back(&map);
    json_.add("$ref", "#/$defs/" + std::string(map.name));
  }

  void write_map(const MapFormat& map) {
    json_.add("description", map.meaning).add("type", "object");
    json_.key("properties").object();
    bool any_required = false;
    for (const KeyFormat& key : map.keys) {
      any_required = any_required || key.required;
      json_.line(indent_ + 2).key(key.name).object();
      write_value(key.value, !key.required);
      json_.add("description", key.meaning);
      if (!key.without.empty()) json_.add("x-without", key.without);
      json_.end();
    }
    json_.line(indent_).end();
    if (any_required) {
      json_.key("required").array();
      for (const KeyFormat& key : map.keys)
        if (key.required) json_.value(key.name);
      json_.end();
    }
    json_.key("additionalProperties");
    if (map.others != nullptr) {
      json_.object();
      write_value(*map.others, true);
      json_.end();
    } else {
      json_.value(map.notes_others);
    }
    if (map.any_of.empty()) return;
    json_.key("anyOf").array();
    for (const auto key : map.any_of) json_.object().key("required").array().value(key).end().end();
    json_.end();
  }

  void write_types(std::initializer_list<std::string_view> types, bool nullable) {
    json_.key("type").array();
    for (const auto type : types) json_.value(type);
    if (nullable) json_.value("null");
    json_.end();
  }

  void write_bounds(const ValueFormat& value, std::string_view least, std::string_view most) {
    if (std::isfinite(value.least) && !(value.kind == Kind::list && value.least == 0))
      json_.key(least).raw(bound_digits(value.least));
    if (std::isfinite(value.most)) json_.key(most).raw(bound_digits(value.most));
  }

  void write_choices(const ValueFormat& value, bool nullable) {
    json_.key("enum").array();
    for (const auto choice : value.choices) json_.value(choice);
    if (nullable) json_.raw("null");
    json_.end();
  }

  void write_alternative(const ValueFormat& value) {
    json_.object();
    write_value(value, false);
    json_.end();
  }

  void write_null() { json_.object().add("type", "null").end(); }

  void write_value(const ValueFormat& value, bool nullable) {
    switch (value.kind) {
      case Kind::any: break;
      case Kind::text: write_types({"string", "number", "boolean"}, nullable); break;
      case Kind::string: write_types({"string"}, nullable); break;
      case Kind::flag: write_types({"boolean"}, nullable); break;
      case Kind::nothing: write_types({"null"}, false); break;
      case Kind::duration:
        write_types({"number", "string"}, nullable);
        json_.add("minimum", 0).add("pattern", kDurationPattern);
        break;
      case Kind::amount:
        write_types({"number", "string"}, nullable);
        json_.add("minimum", 0).add("pattern", kAmountPattern);
        break;
      case Kind::whole:
      case Kind::number:
        write_types({value.kind == Kind::whole ? "integer" : "number"}, nullable);
        if (value.between)
          write_bounds(value, "exclusiveMinimum", "exclusiveMaximum");
        else
          write_bounds(value, "minimum", "maximum");
        break;
      case Kind::choice: write_choices(value, nullable); break;
      case Kind::list:
        write_types({"array"}, nullable);
        json_.key("items");
        write_alternative(*value.of);
        write_bounds(value, "minItems", "maxItems");
        break;
      case Kind::entries:
        write_types({"object"}, nullable);
        json_.key("additionalProperties");
        write_alternative(*value.of);
        break;
      case Kind::map: write_reference(*value.keys, nullable); break;
      case Kind::either:
        json_.key("anyOf").array();
        for (const auto& alternative : value.alternatives) write_alternative(alternative);
        if (nullable) write_null();
        json_.end();
        break;
    }
  }

  void write_reference(const MapFormat& map, bool nullable) {
    if (!nullable) return refer_to(map);
    json_.key("anyOf").array().object();
    refer_to(map);
    json_.end();
    write_null();
    json_.end();
  }

  JsonWriter json_{JsonWriter::Style::spaced};
  int indent_ = 2;
  std::vector<const MapFormat*> named_;
};

}  // namespace

std::string json_schema(std::string_view title, const MapFormat& root) {
  return SchemaWriter().write(title, root);
}

}  // namespace berth
