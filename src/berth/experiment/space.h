// The search space as coordinates: each parameter a line from 0 to 1, along which its values lie
// evenly, in its own scale. Pure; used by whatever proposes trials.
#pragma once

#include <optional>
#include <string>

#include "berth/base/rng.h"
#include "berth/experiment/program.h"

namespace berth::experiment {

/// Whether a trial with these values of earlier parameters has this one.
bool present(const Parameter& parameter, const Values& earlier);
const std::string* find_value(const Values& values, std::string_view name);

/// Six significant digits: what a person can read, and more than a search can tell apart. All of
/// them where six would leave the range.
std::string number_text(double value, double min, double max);

/// The value at `part` (0..1) of the way, each value (or each integer) with an equal share of it;
/// of a range on a log scale, equal in the exponent.
std::string value_at(const Parameter& parameter, double part);
/// Where on the way it lies: of a choice or integer, the middle of its share. nullopt: no value of
/// this parameter.
std::optional<double> part_of(const Parameter& parameter, const std::string& value);
std::string draw(const Parameter& parameter, Rng& rng);

/// How many values a grid has of it; 0: a range whose number of points is not given.
std::int64_t grid_size(const Parameter& parameter);
std::string grid_value(const Parameter& parameter, std::int64_t index);

}  // namespace berth::experiment
