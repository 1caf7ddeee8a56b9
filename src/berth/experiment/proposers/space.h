// The search space as coordinates: each parameter is a line from 0 to 1, along which its values lie
// evenly in the parameter's scale. Proposers use it. Pure.
#pragma once

#include <optional>
#include <string>

#include "berth/base/rng.h"
#include "berth/experiment/program.h"

namespace berth::experiment {

/// Whether a trial with these values of earlier parameters has this one.
bool present(const Parameter& parameter, const Values& earlier);
const std::string* find_value(const Values& values, std::string_view name);

/// The value with this number of significant digits, or with all digits if rounding would leave the
/// range. Six are easy to read, and few searches notice what they leave out.
std::string number_text(double value, double min, double max, int digits = 6);

/// The value at the coordinate `part` (0..1). Each choice and each integer has an equal share of
/// the line; a range on a log scale is even in the exponent. A narrow range far from 0 gets more
/// than `digits` digits.
std::string value_at(const Parameter& parameter, double part, int digits = 6);
/// The coordinate of a value, for a choice or integer the middle of its share. nullopt: the
/// parameter has no such value.
std::optional<double> part_of(const Parameter& parameter, const std::string& value);
/// The parameter's own text of a value that a person or a program wrote: "2" of integers for "2.0".
/// nullopt: the parameter does not have this value.
std::optional<std::string> value_of(const Parameter& parameter, const std::string& text,
                                    const ValueTypes& types = {});
/// The part of the line that the value at a coordinate has for itself; 0: of a range of floats.
double share(const Parameter& parameter, double part);
std::string draw(const Parameter& parameter, Rng& rng);

/// The number of the parameter's values in a grid; 0: a range without a number of points.
std::int64_t grid_size(const Parameter& parameter);
std::string grid_value(const Parameter& parameter, std::int64_t index);

}  // namespace berth::experiment
