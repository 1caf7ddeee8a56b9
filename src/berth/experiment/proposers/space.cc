#include "berth/experiment/proposers/space.h"

#include <algorithm>
#include <cmath>

#include "berth/base/units.h"
#include "berth/experiment/steps.h"

namespace berth::experiment {
namespace {

constexpr int kAllDigits = 17;        // with these every double reads back as it was
constexpr double kOffTheStep = 1e-9;  // part of a step: what a person has computed is that far off

double to_scale(const Parameter& parameter, double value) {
  return parameter.scale == Parameter::Scale::log ? std::log(value) : value;
}

double from_scale(const Parameter& parameter, double value) {
  return parameter.scale == Parameter::Scale::log ? std::exp(value) : value;
}

double value_between(const Parameter& parameter, double min, double max, double part) {
  return from_scale(parameter, std::lerp(to_scale(parameter, min), to_scale(parameter, max), part));
}

/// From one value to the next one; 0: a range of all floats.
double spacing(const Parameter& parameter) {
  return parameter.step > 0 ? parameter.step : parameter.integer ? 1 : 0;
}

/// The index of the step that is nearest to the value.
std::int64_t step_index(const Parameter& parameter, double value) {
  return std::llround((value - parameter.min) / parameter.step);
}

/// The point with this index of a range with a step. The last one is `max` itself.
double point(const Parameter& parameter, std::int64_t index) {
  if (index >= step_index(parameter, parameter.max)) return parameter.max;
  return step_point(parameter.min, parameter.step, index);
}

/// The nearest value of a range that has some only.
double settled(const Parameter& parameter, double value) {
  value = std::clamp(value, parameter.min, parameter.max);
  if (parameter.step > 0) return point(parameter, step_index(parameter, value));
  if (parameter.integer) return std::round(value);
  return value;
}

/// The digits that a value needs in addition to those of a range that begins near 0: six would give
/// a range such as 1e6..1e6+1 one value only.
int further_digits(const Parameter& parameter, double value) {
  const double width = parameter.scale == Parameter::Scale::log
                           ? std::abs(value) * std::log(parameter.max / parameter.min)
                           : parameter.max - parameter.min;
  const double ratio = std::abs(value) / width;
  return ratio >= 10 ? static_cast<int>(std::min(std::log10(ratio), 17.0)) : 0;
}

std::string text_of(const Parameter& parameter, double value, int digits = 6) {
  value = settled(parameter, value);
  if (parameter.integer) return fmt::format("{}", std::llround(value));
  if (parameter.step > 0) return format_number(value);
  digits = std::min(digits + further_digits(parameter, value), kAllDigits);
  return number_text(value, parameter.min, parameter.max, digits);
}

/// Every integer and step has a share of its own, from half a step before it to half a step behind.
double shares_begin(const Parameter& parameter) {
  return parameter.min - spacing(parameter) / 2;
}
double shares_end(const Parameter& parameter) {
  return parameter.max + spacing(parameter) / 2;
}

}  // namespace

const std::string* find_value(const Values& values, std::string_view name) {
  const auto found = std::ranges::find(values, name, &Values::value_type::first);
  return found == values.end() ? nullptr : &found->second;
}

bool present(const Parameter& parameter, const Values& earlier) {
  return std::ranges::all_of(parameter.when, [&](const Condition& condition) {
    const auto* value = find_value(earlier, condition.parameter);
    return value != nullptr &&
           std::ranges::find(condition.values, *value) != condition.values.end();
  });
}

std::string number_text(double value, double min, double max, int digits) {
  const double rounded = std::strtod(fmt::format("{:.{}g}", value, digits).c_str(), nullptr);
  const bool inside = min <= rounded && rounded <= max;
  return format_number((inside ? rounded : value) + 0.0);  // -0 becomes 0
}

std::string value_at(const Parameter& parameter, double part, int digits) {
  if (!parameter.choices.empty()) {
    const auto count = static_cast<double>(parameter.choices.size());
    return parameter.choices[static_cast<std::size_t>(std::clamp(part * count, 0.0, count - 1))];
  }
  return text_of(parameter,
                 value_between(parameter, shares_begin(parameter), shares_end(parameter), part),
                 digits);
}

std::optional<double> part_of(const Parameter& parameter, const std::string& value) {
  if (!parameter.choices.empty()) {
    const auto found = std::ranges::find(parameter.choices, value);
    if (found == parameter.choices.end()) return std::nullopt;
    return (static_cast<double>(found - parameter.choices.begin()) + 0.5) /
           static_cast<double>(parameter.choices.size());
  }
  const auto number = parse_number(value);
  if (!number || *number < parameter.min || *number > parameter.max) return std::nullopt;
  const double begin = to_scale(parameter, shares_begin(parameter));
  const double end = to_scale(parameter, shares_end(parameter));
  return begin == end ? 0.5 : (to_scale(parameter, *number) - begin) / (end - begin);
}

namespace {

/// The choice with this text, or the one number that equals it.
std::optional<std::string> choice_of(const Parameter& parameter, const std::string& text,
                                     const ValueTypes& types) {
  const auto& choices = parameter.choices;
  if (std::ranges::find(choices, text) != choices.end()) return text;
  const auto number = parse_number(text);
  if (!number) return std::nullopt;
  const auto equal = [&](const std::string& choice) {
    const auto other = parse_number(choice);
    return other && *other == *number && !types.texts.contains({parameter.name, choice});
  };
  const auto found = std::ranges::find_if(choices, equal);
  return found == choices.end() ? std::nullopt : std::optional(*found);
}

std::optional<std::string> integer_of(const Parameter& parameter, const std::string& text) {
  auto integer = parse_integer(text);
  const auto number = parse_number(text);
  if (!integer && number && std::abs(*number) < 9e18 && *number == std::floor(*number))
    integer = static_cast<std::int64_t>(*number);
  const auto min = static_cast<std::int64_t>(parameter.min);
  if (!integer || *integer < min || *integer > static_cast<std::int64_t>(parameter.max))
    return std::nullopt;
  if (parameter.step > 0 && (*integer - min) % static_cast<std::int64_t>(parameter.step) != 0)
    return std::nullopt;
  return fmt::format("{}", *integer);
}

}  // namespace

std::optional<std::string> value_of(const Parameter& parameter, const std::string& text,
                                    const ValueTypes& types) {
  if (!parameter.choices.empty()) return choice_of(parameter, text, types);
  if (parameter.integer) return integer_of(parameter, text);
  const auto number = parse_number(text);
  if (!number) return std::nullopt;
  const double off = parameter.step * kOffTheStep;
  if (*number < parameter.min - off || *number > parameter.max + off) return std::nullopt;
  if (parameter.step == 0) return format_number(*number);
  const double nearest = point(parameter, step_index(parameter, *number));
  if (std::abs(nearest - *number) > off) return std::nullopt;
  return format_number(nearest);
}

double share(const Parameter& parameter, double part) {
  if (!parameter.choices.empty()) return 1 / static_cast<double>(parameter.choices.size());
  const double by = spacing(parameter);
  if (by == 0) return 0;
  const double begin = to_scale(parameter, shares_begin(parameter));
  const double end = to_scale(parameter, shares_end(parameter));
  const double value = settled(parameter, from_scale(parameter, std::lerp(begin, end, part)));
  return (to_scale(parameter, value + by / 2) - to_scale(parameter, value - by / 2)) /
         (end - begin);
}

std::string draw(const Parameter& parameter, Rng& rng) {
  if (!parameter.choices.empty()) return parameter.choices[rng.below(parameter.choices.size())];
  if (parameter.integer && parameter.step == 0 && parameter.scale == Parameter::Scale::linear) {
    const auto min = static_cast<std::int64_t>(parameter.min);
    const auto count = static_cast<std::uint64_t>(static_cast<std::int64_t>(parameter.max) - min);
    return fmt::format("{}", min + static_cast<std::int64_t>(rng.below(count + 1)));
  }
  return value_at(parameter, rng.uniform());
}

std::int64_t grid_size(const Parameter& parameter) {
  if (!parameter.choices.empty()) return static_cast<std::int64_t>(parameter.choices.size());
  if (const double by = spacing(parameter); by > 0) {
    const double values = std::round((parameter.max - parameter.min) / by) + 1;
    const auto all = static_cast<std::int64_t>(std::min(values, 1e15));
    return parameter.points > 0 ? std::min(parameter.points, all) : all;
  }
  return parameter.points;
}

std::string grid_value(const Parameter& parameter, std::int64_t index) {
  if (!parameter.choices.empty()) return parameter.choices[static_cast<std::size_t>(index)];
  const std::int64_t size = grid_size(parameter);
  if (parameter.step > 0 && parameter.points == 0)
    return text_of(parameter, point(parameter, index));
  if (parameter.integer && parameter.points == 0)
    return fmt::format("{}", static_cast<std::int64_t>(parameter.min) + index);
  const double part = size == 1 ? 0 : static_cast<double>(index) / static_cast<double>(size - 1);
  return text_of(parameter, value_between(parameter, parameter.min, parameter.max, part));
}

}  // namespace berth::experiment
