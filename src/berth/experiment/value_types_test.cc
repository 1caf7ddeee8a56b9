// What values are in JSON: numbers, true and false, or text in quotes.
#include <gtest/gtest.h>

#include "berth/experiment/program.h"

namespace berth::experiment {
namespace {

Program read(std::string_view text) {
  auto program = read_program(text, "f.yaml");
  EXPECT_TRUE(program) << program.error().message;
  return program ? *std::move(program) : Program{};
}

TEST(ValueTypes, ValuesKeepTheTypesOfTheirChoices) {
  const Program program = read(R"(
run: x
params:
  layers: [1, 2]
  flag: [true, false]
  net: [a, "1", "true", "a b"]
  rate: [0.5, 1.0]
  lr: {min: 1, max: 10}
  width: {min: 1, max: 10, type: int}
search: {method: halving, samples: 3, budget: {param: part, min: 0.5, max: 4, reduction: 2}}
goal: {metric: m}
)");
  const Values values{{"layers", "1"}, {"flag", "true"}, {"net", "1"},  {"rate", "1.0"},
                      {"lr", "10"},    {"width", "10"},  {"part", "1"}, {"other", "1"}};
  const std::string json =
      R"({"layers":1,"flag":true,"net":"1","rate":1.0,"lr":10.0,"width":10,"part":1.0,"other":1})";
  EXPECT_EQ(values_json(values, program.types), json);
  const auto back = from_json_text(to_json_text(program));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(values_json(values, back->types), json);
  EXPECT_EQ(values_json({{"net", "true"}}, back->types), R"({"net":"true"})");
  EXPECT_EQ(program.types.texts.size(), 2U) << "a and a b are text by themselves";
}

TEST(ValueTypes, NullsListsAndMapsAreJson) {
  const Program program = read(R"(
run: x
params: {c: [null, l2, [1, "2", [true, null]], {a: 0.5, b: x}], d: [1, 1.0]}
)");
  const auto& choices = program.params[0].choices;
  EXPECT_EQ(choices, (std::vector<std::string>{"null", "l2", R"([1,"2",[true,null]])",
                                               R"({"a":0.5,"b":"x"})"}));
  const auto back = from_json_text(to_json_text(program));
  ASSERT_TRUE(back);
  std::string all;
  for (const auto& choice : choices) all += values_json({{"c", choice}}, back->types);
  EXPECT_EQ(all, R"({"c":null}{"c":"l2"}{"c":[1,"2",[true,null]]}{"c":{"a":0.5,"b":"x"}})");
  EXPECT_EQ(values_json({{"other", "null"}}, back->types), R"({"other":"null"})");
  EXPECT_EQ(values_json({{"d", "1.0"}}, back->types), R"({"d":1.0})");
}

TEST(ValueTypes, OneTextIsOfOneType) {
  constexpr std::pair<std::string_view, std::string_view> kCases[] = {
      {"run: x\nparams: {a: [1, \"1\"]}",
       "f.yaml:2: params.a[0]: 1 and \"1\" would be the same value to a command: quote both "
       "or neither"},
      {"run: x\nsearch: {method: sequence, points: [{a: 1}, {b: 1, a: \"1\"}]}",
       "f.yaml:2: search.points[0].a: 1 and \"1\" would be the same value to a command: quote "
       "both or neither"}};
  for (const auto& [text, message] : kCases) {
    const auto program = read_program(text, "f.yaml");
    ASSERT_FALSE(program) << text;
    EXPECT_EQ(program.error().message, message);
  }
  const Program points = read("run: x\nsearch: {method: sequence, points: [{a: 1, b: \"1\"}]}");
  EXPECT_EQ(values_json(points.search.points[0], points.types), R"({"a":1,"b":"1"})");
}

}  // namespace
}  // namespace berth::experiment
