// Values of ranges: decimal steps, narrow ranges, and the values that a space has.
#include "berth/experiment/steps.h"

#include <gtest/gtest.h>

#include <set>

#include "berth/base/units.h"
#include "berth/experiment/own_point.h"
#include "berth/experiment/proposers/space.h"

namespace berth::experiment {
namespace {

Parameter parameter_of(const std::string& spec, const std::string& search = "{method: grid}") {
  const auto program = read_program(
      "run: x\nparams: {x: " + spec + "}\nsearch: " + search + "\ngoal: {metric: m}\n", "f.yaml");
  EXPECT_TRUE(program) << program.error().message;
  return program ? program->params.at(0) : Parameter{};
}

std::vector<std::string> grid_of(const std::string& spec) {
  const Parameter parameter = parameter_of(spec);
  std::vector<std::string> values;
  for (std::int64_t i = 0; i < grid_size(parameter); ++i)
    values.push_back(grid_value(parameter, i));
  return values;
}

using Texts = std::vector<std::string>;

TEST(Steps, PointsAreTheDecimalsThatAPersonWouldWrite) {
  EXPECT_EQ(grid_of("{min: 0, max: 0.9, step: 0.3}"), (Texts{"0", "0.3", "0.6", "0.9"}));
  EXPECT_EQ(grid_of("{min: 0, max: 2.1, step: 0.7}"), (Texts{"0", "0.7", "1.4", "2.1"}));
  EXPECT_EQ(grid_of("{min: 0.018, max: 0.021, step: 0.003}"), (Texts{"0.018", "0.021"}));
  EXPECT_EQ(grid_of("{min: 0.8, max: 0.9, step: 0.1}"), (Texts{"0.8", "0.9"}));
  EXPECT_EQ(grid_of("{min: -0.2, max: 0.1, step: 0.1}"), (Texts{"-0.2", "-0.1", "0", "0.1"}));
  EXPECT_EQ(grid_of("{min: 1e-9, max: 3e-9, step: 1e-9}"), (Texts{"1e-09", "2e-09", "3e-09"}));
  EXPECT_EQ(grid_of("{min: 1e6, max: 1000000.2, step: 0.1}"),
            (Texts{"1000000", "1000000.1", "1000000.2"}));
  EXPECT_EQ(grid_of("{min: 0, max: 1, step: 0.3}"), (Texts{"0", "0.3", "0.6", "0.9"}))
      << "the range ends on the last whole step";
  EXPECT_EQ(grid_of("{min: 0, max: 1, step: 0.3333333333333333}").back(), "1")
      << "a step that was computed";
  const Texts whole{"9007199254740990", "9007199254740992"};
  EXPECT_EQ(grid_of("{min: 9007199254740990, max: 9007199254740992, step: 2, type: int}"), whole);
}

TEST(Steps, AreWithinDigitsThatFit) {
  EXPECT_EQ(whole_steps(0, 1e300, 1e-300), whole_steps(0, 1e300, 1e-290)) << "beyond all counts";
  EXPECT_EQ(whole_steps(-1e300, 1e300, 1e300), 2);
  EXPECT_EQ(step_point(-1e300, 1e300, 1), 0);
  EXPECT_EQ(step_point(1e20, 0.5, 3), 1e20);
  EXPECT_EQ(step_point(0.1, 0.1, 9'007'199'254'740'991), 900'719'925'474'099.2);
}

TEST(Steps, EveryMethodDrawsPointsOfTheGrid) {
  for (const auto* method : {"random", "sobol", "tpe", "gp", "cma-es", "nsga2"}) {
    const auto search = fmt::format("{{method: {}, samples: 9}}", method);
    const Parameter parameter = parameter_of("{min: -1.8, max: 3.0, step: 0.6}", search);
    std::set<std::string> seen;
    for (int i = 0; i <= 200; ++i) seen.insert(value_at(parameter, i / 200.0));
    EXPECT_EQ(seen, (std::set<std::string>{"-1.8", "-1.2", "-0.6", "0", "0.6", "1.2", "1.8", "2.4",
                                           "3"}));
  }
}

TEST(Space, NarrowRangesFarFromZeroHaveManyValues) {
  for (const auto* spec :
       {"{min: 1e6, max: 1000001}", "{min: 1.7e9, max: 1700003600}", "{min: 1550, max: 1550.01}",
        "{min: -100.001, max: -100}", "{min: 1, max: 1.0000001, scale: log}",
        "{min: 1e15, max: 1000000000000016}"}) {
    const Parameter parameter = parameter_of(spec, "{method: random, samples: 9}");
    std::set<std::string> seen;
    for (int i = 0; i < 100; ++i) {
      const std::string value = value_at(parameter, i / 100.0);
      seen.insert(value);
      EXPECT_EQ(format_number(*parse_number(value)), value) << "reads back as it was";
      EXPECT_EQ(value_of(parameter, value), value);
    }
    EXPECT_GE(seen.size(), 90U) << spec;
  }
  EXPECT_EQ(value_at(parameter_of("{min: 0, max: 1}", "{method: random, samples: 9}"), 1.0 / 3),
            "0.333333")
      << "six digits where they are enough";
}

TEST(Space, HasAValueOnlyAsItsTypeAndStepsSay) {
  const auto value = [](const std::string& spec, const std::string& text) {
    const Parameter parameter = parameter_of(spec, "{method: random, samples: 9}");
    return value_of(parameter, text).value_or("none");
  };
  const std::string whole = "{min: 1, max: 10, type: int}",
                    even = "{min: 0, max: 10, step: 2, type: int}";
  EXPECT_EQ(value(whole, "2.0"), "2");
  EXPECT_EQ(value(whole, "1e1"), "10");
  EXPECT_EQ(value(whole, "2.5"), "none");
  EXPECT_EQ(value(whole, "11"), "none");
  EXPECT_EQ(value(even, "4.0"), "4");
  EXPECT_EQ(value(even, "3"), "none");
  EXPECT_EQ(value("{min: 0, max: 0.9, step: 0.3}", "0.9"), "0.9");
  EXPECT_EQ(value("{min: 0, max: 0.9, step: 0.3}", "0.8999999999999999"), "0.9");
  EXPECT_EQ(value("{min: 0, max: 0.9, step: 0.3}", "0.5"), "none");
  EXPECT_EQ(value("{min: 0, max: 1}", "1.0"), "1");
  EXPECT_EQ(value("{min: 0, max: 1}", "true"), "none");
  EXPECT_EQ(value("{min: 0, max: 9007199254740992, type: int}", "9007199254740993"), "none");
  EXPECT_EQ(value("[1, 0.5]", "1.0"), "1");
  EXPECT_EQ(value("[1, 0.5]", "2"), "none");
}

TEST(Space, RefusesWhatItCannotRepresent) {
  const std::pair<std::string, std::string> cases[] = {
      {"{min: 0, max: 9007199254740993, type: int}",
       "f.yaml:2: params.x.max: expected a whole number from -9007199254740992 to "
       "9007199254740992; got 9007199254740993"},
      {"{min: 0, max: 1.5, type: int}",
       "f.yaml:2: params.x.max: expected a whole number, since type is int"},
      {"{min: 0, max: 1, step: 1.5}",
       "f.yaml:2: params.x.step: expected more than 0 and at most max - min, 1; got 1.5"},
      {"{min: 1e16, max: 10000000000000010, step: 0.5}",
       "f.yaml:2: params.x.step: too small: 1e+16 plus 0.5 is 1e+16"},
      {"[null, \"null\"]",
       "f.yaml:2: params.x[1]: null and \"null\" would be the same value to a command: quote "
       "both or neither"},
      {"~", "f.yaml:2: params.x: expected a value or a list of choices; null is [null]"}};
  for (const auto& [spec, message] : cases) {
    const auto program = read_program("run: x\nparams: {x: " + spec + "}\n", "f.yaml");
    ASSERT_FALSE(program) << spec;
    EXPECT_EQ(program.error().message, message);
  }
}

}  // namespace
}  // namespace berth::experiment
