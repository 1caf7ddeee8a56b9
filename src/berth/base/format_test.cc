// What editors are told of a format, and that readers take their keys from the same table.
#include "berth/base/format.h"

#include <gtest/gtest.h>

#include <array>

#include "berth/base/document.h"

namespace berth {
namespace {

namespace f = format;

constexpr std::array<std::string_view, 2> kColours{"red", "green"};
extern const MapFormat kLeaf;
constexpr ValueFormat kLeaves = f::map_of(kLeaf);
constexpr KeyFormat kLeafKeys[] = {{"leaf", f::text(), "", "", true},
                                   {"below", f::list_of(kLeaves, 1), "", "none"}};
constinit const MapFormat kLeaf{"leaf", "Refers to itself.", kLeafKeys};
constexpr KeyFormat kTreeKeys[] = {{"count", f::whole(1, 1000000), "how many", "1"},
                                   {"part", f::number_between(0, 1), "", "", true},
                                   {"colour", f::one_of(kColours), "", "red"},
                                   {"leaf", kLeaves, ""}};
constexpr std::string_view kOneOfThem[] = {"count", "leaf"};
constexpr MapFormat kTree{
    .name = "tree", .meaning = "A tree.", .keys = kTreeKeys, .any_of = kOneOfThem};

TEST(Format, SchemaHasKeysBoundsChoicesAndEachMapOnce) {
  EXPECT_EQ(
      json_schema("Tree", kTree),
      R"({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Tree", "description": "A tree.", "type": "object", "properties": {
    "count": {"type": ["integer", "null"], "minimum": 1, "maximum": 1000000, "description": "how many", "x-without": "1"},
    "part": {"type": ["number"], "exclusiveMinimum": 0, "exclusiveMaximum": 1, "description": ""},
    "colour": {"enum": ["red", "green", null], "description": "", "x-without": "red"},
    "leaf": {"anyOf": [{"$ref": "#/$defs/leaf"}, {"type": "null"}], "description": ""}
  }, "required": ["part"], "additionalProperties": false, "anyOf": [{"required": ["count"]}, {"required": ["leaf"]}],
  "$defs": {
    "leaf": {"description": "Refers to itself.", "type": "object", "properties": {
      "leaf": {"type": ["string", "number", "boolean"], "description": ""},
      "below": {"type": ["array", "null"], "items": {"$ref": "#/$defs/leaf"}, "minItems": 1, "description": "", "x-without": "none"}
    }, "required": ["leaf"], "additionalProperties": false}
  }
}
)");
}

TEST(Format, ReadersTakeTheKeysOfTheTable) {
  EXPECT_TRUE(
      Field::parse("{count: 1, part: 0.5, colour: red, leaf: {}}", "f")->expect_keys(kTree));
  const Field wrong = *Field::parse("coulour: red\ncount: 1", "f");
  EXPECT_EQ(wrong.expect_keys(kTree).error().message,
            "f:1: unknown key 'coulour'; did you mean 'colour'?");
  EXPECT_EQ(wrong.unknown_keys(kTree).size(), 1U);
}

}  // namespace
}  // namespace berth
