// Learning-curve extrapolation: how likely a trial is to reach a value later. Saturating curves of
// a few families, each with many rates of approach, are fitted by least squares and weighted by how
// well they agree with the reports. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace berth::experiment {

/// The probability that the value at step `at` (counted from 1) exceeds `target`, given the values
/// of the first steps, which do not fall but for noise. nullopt: there are too few values.
std::optional<double> chance_to_exceed(std::span<const double> values, std::int64_t at,
                                       double target);

}  // namespace berth::experiment
