#include "berth/experiment/own_point.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/experiment/document/reading.h"
#include "berth/experiment/proposers/space.h"

namespace berth::experiment {

Result<Values> read_own_point(std::string_view text) {
  text = trim(text);
  if (text.starts_with('{')) {
    ValueTypes types;  // what the space says counts
    BERTH_ASSIGN(const Field field, Field::parse(text, "a point"));
    return read_point(field, types);
  }
  Values point;
  for (const auto word : words(text)) {
    const auto equals = word.find('=');
    const std::string name(word.substr(0, equals));
    if (equals == std::string_view::npos || !valid_parameter_name(name))
      return fail(ErrorKind::invalid, "expected NAME=VALUE …, or {{NAME: VALUE, …}}, got '{}'",
                  clip(text));
    if (find_value(point, name) != nullptr)
      return fail(ErrorKind::invalid, "{} is given twice", name);
    point.emplace_back(name, word.substr(equals + 1));
  }
  return point;
}

Result<Values> check_own_point(const Program& program, Values given, bool grows) {
  if (program.search.budget)
    return fail(ErrorKind::invalid, "a search with a budget chooses its trials itself");
  for (auto& [name, value] : given) {
    const auto parameter = std::ranges::find(program.params, name, &Parameter::name);
    if (parameter == program.params.end() && !grows)
      return fail(ErrorKind::invalid, "{}: the space has no such parameter", clip(name));
    if (parameter == program.params.end()) continue;
    auto own = value_of(*parameter, value, program.types);
    if (!own) return not_in_space(*parameter, value);
    value = *std::move(own);
  }
  return given;
}

std::unexpected<Error> not_in_space(const Parameter& parameter, const std::string& value) {
  const bool between = parameter.choices.empty() && part_of(parameter, value).has_value();
  return fail(ErrorKind::invalid, "{}: '{}' lies {} {}", clip(parameter.name), clip(value),
              between ? "between the values of" : "outside", space_text(parameter));
}

Values completed(const std::vector<Parameter>& params, const Values& given, const Values& proposed,
                 Rng& rng) {
  Values all;
  for (const auto& parameter : params) {
    const auto* own = find_value(given, parameter.name);
    const auto* other = find_value(proposed, parameter.name);
    if (own != nullptr)
      all.emplace_back(parameter.name, *own);
    else if (present(parameter, all))
      all.emplace_back(parameter.name, other != nullptr ? *other : draw(parameter, rng));
  }
  for (const auto& value : given)
    if (find_value(all, value.first) == nullptr) all.push_back(value);
  return all;
}

std::string space_text(const Parameter& parameter) {
  if (!parameter.choices.empty()) return "one of " + join(parameter.choices, ", ");
  std::string text = fmt::format("{}..{}", parameter.min, parameter.max);
  if (parameter.step > 0) text += fmt::format(" in steps of {}", parameter.step);
  if (parameter.integer) text += ", int";
  if (parameter.scale == Parameter::Scale::log) text += ", log";
  return text;
}

}  // namespace berth::experiment
