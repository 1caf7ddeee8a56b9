#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/exec/fields.h"
#include "berth/experiment/document/format.h"
#include "berth/experiment/document/reading.h"
#include "berth/experiment/steps.h"

namespace berth::experiment {
namespace {

constexpr double kGreatestInteger = 9007199254740992.0;  // 2^53: exact in a double
constexpr double kSameStep = 1e-9;  // part of a step: a max that is this near to a step is on it

/// A bound of integers is exact in a double.
Status check_integer(const Field& bound, double value) {
  if (value != std::floor(value)) return bound.error("expected a whole number, since type is int");
  const auto written = parse_integer(bound.node().text);
  const bool fits = std::abs(value) <= kGreatestInteger &&
                    (!written || std::abs(static_cast<double>(*written)) <= kGreatestInteger);
  if (fits && (!written || *written == static_cast<std::int64_t>(value))) return {};
  return bound.error(fmt::format("expected a whole number from -{0:.0f} to {0:.0f}; got {1}",
                                 kGreatestInteger, clip(bound.node().text, 60)));
}

/// The range ends on the last whole step.
Status read_step(const Field& field, Parameter& parameter) {
  BERTH_ASSIGN(parameter.step, field.number());
  const double range = parameter.max - parameter.min;
  const std::int64_t steps =
      parameter.step > 0 ? whole_steps(parameter.min, parameter.max, parameter.step) : 0;
  if (steps < 1)
    return field.error(fmt::format("expected more than 0 and at most max - min, {}; got {}",
                                   format_number(range), format_number(parameter.step)));
  if (parameter.scale == Parameter::Scale::log)
    return field.error("a log scale has no even steps: leave out one of step and scale");
  if (parameter.integer && parameter.step != std::floor(parameter.step))
    return field.error("expected a whole number, since type is int");
  if (range / parameter.step > kGreatestInteger) return field.error("too small for the range");
  const double last = step_point(parameter.min, parameter.step, steps);
  if (std::abs(last - parameter.max) > kSameStep * parameter.step) parameter.max = last;
  if (step_point(parameter.min, parameter.step, 1) == parameter.min)
    return field.error(fmt::format("too small: {} plus {} is {}", format_number(parameter.min),
                                   format_number(parameter.step), format_number(parameter.min)));
  return {};
}

Status read_range(const Field& field, Parameter& parameter) {
  BERTH_TRY(field.expect_keys(kRangeFormat));
  BERTH_ASSIGN(const Field min, field.get("min"));
  BERTH_ASSIGN(const Field max, field.get("max"));
  BERTH_ASSIGN(parameter.min, min.number());
  BERTH_ASSIGN(parameter.max, max.number());
  if (parameter.min > parameter.max) return max.error("max is below min");
  BERTH_TRY(read_choice(field, "scale", Parameter::kScaleNames, parameter.scale));
  if (parameter.scale == Parameter::Scale::log && parameter.min <= 0)
    return min.error("a log scale takes a min above 0");
  BERTH_ASSIGN(const std::size_t type, choice_or(field, "type", kNumberTypes));
  parameter.integer = type == 1;
  if (parameter.integer) {
    BERTH_TRY(check_integer(min, parameter.min));
    BERTH_TRY(check_integer(max, parameter.max));
  }
  if (const auto step = field.find("step")) BERTH_TRY(read_step(*step, parameter));
  if (const auto points = field.find("n")) {
    BERTH_ASSIGN(parameter.points, exec::integer_within(*points, 1, kMostTrials));
  }
  return {};
}

/// The values of the parameter `name`: one, or a list of them.
Status read_values(const std::string& name, const Field& field, std::vector<std::string>& values,
                   ValueTypes& types) {
  std::vector<Field> items{field};
  if (field.is_list()) {
    BERTH_ASSIGN(items, field.items());
  }
  if (items.empty()) return field.error("the list of choices is empty");
  if (field.is_null()) return field.error("expected a value or a list of choices; null is [null]");
  for (const auto& item : items) {
    BERTH_ASSIGN(values.emplace_back(), read_value(name, item, types));
  }
  for (const auto& item : items) BERTH_TRY(check_type(name, item, types));
  return {};
}

/// A condition is about what a trial has by then: a choice of a parameter before this one.
Status read_conditions(const Field& field, const Program& program, Parameter& parameter) {
  BERTH_ASSIGN(const auto entries, field.entries());
  for (const auto& [name, values] : entries) {
    const auto earlier = std::ranges::find(program.params, name, &Parameter::name);
    if (earlier == program.params.end() || earlier->choices.empty())
      return values.error(fmt::format(
          "expected a parameter with choices that is defined before '{}'", parameter.name));
    Condition condition{.parameter = name, .values = {}};
    ValueTypes types;  // the parameter itself says what they are
    BERTH_TRY(read_values(name, values, condition.values, types));
    for (const auto& value : condition.values)
      if (std::ranges::find(earlier->choices, value) == earlier->choices.end())
        return values.error(fmt::format("'{}' is not a choice of '{}': {}", value, name,
                                        join(earlier->choices, ", ")));
    parameter.when.push_back(std::move(condition));
  }
  return {};
}

Result<Parameter> read_parameter(const std::string& name, const Field& field, Program& program) {
  if (!valid_parameter_name(name))
    return field.error(
        "a parameter's name consists of letters, digits and _, does not begin with a digit, and is "
        "neither params_file nor index");
  Parameter parameter{.name = name, .choices = {}};
  if (!field.is_map()) {
    BERTH_TRY(read_values(name, field, parameter.choices, program.types));
  } else if (const auto choices = field.find("choices")) {
    BERTH_TRY(field.expect_keys(kChoicesFormat));
    BERTH_TRY(read_values(name, *choices, parameter.choices, program.types));
  } else {
    BERTH_TRY(read_range(field, parameter));
    if (!parameter.integer) program.types.floats.insert(name);
  }
  if (const auto when = field.find("when")) BERTH_TRY(read_conditions(*when, program, parameter));
  return parameter;
}

}  // namespace

Result<std::string> read_value(const std::string& name, const Field& field, ValueTypes& types) {
  if (!field.is_scalar()) {
    BERTH_ASSIGN(std::string json, json_text(field));
    types.json.emplace(name, json);
    return json;
  }
  BERTH_ASSIGN(std::string text, exec::process_text(field));
  if (field.node().quoted && !reads_as_text(text)) types.texts.emplace(name, text);
  return text;
}

Status check_type(const std::string& name, const Field& value, const ValueTypes& types) {
  if (!value.is_scalar()) return {};
  const std::string text(value.node().text);
  const bool differs = types.json.contains({name, text}) ||
                       (!value.node().quoted && types.texts.contains({name, text}));
  if (!differs) return {};
  return value.error(fmt::format(
      "{0} and \"{0}\" would be the same value to a command: quote both or neither", text));
}

bool valid_parameter_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= 64 && !(name[0] >= '0' && name[0] <= '9') &&
         name != "params_file" && name != "index" && std::ranges::all_of(name, allowed);
}

Status read_params(const Field& params, Program& program) {
  BERTH_ASSIGN(const auto entries, params.entries());
  std::unordered_map<std::string, std::string> names;  // by what their variables are told by
  Faults faults;
  for (const auto& [name, field] : entries) {
    Parameter parameter;
    if (!faults.take(parameter, read_parameter(name, field, program))) continue;
    const auto [earlier, is_new] = names.try_emplace(lower(name), name);
    if (!is_new)
      faults.add(field.error(fmt::format("'{}' and '{}' would share one BERTH_PARAM_ variable",
                                         earlier->second, name)));
    if (!parameter.when.empty()) program.optional.push_back(name);
    program.params.push_back(std::move(parameter));
  }
  return faults.status();
}

}  // namespace berth::experiment
