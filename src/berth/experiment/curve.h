// How likely a trial that has reported this much is to reach a value later: saturating curves of a
// few families, each with many rates of approach, are fitted by least squares, and each counts as
// much as it agrees with what was reported. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace berth::experiment {

/// That the value at step `at` (counted from 1) is above `target`, given those of the first steps,
/// which rise or stay where they are, but for noise. nullopt: too few to say.
std::optional<double> chance_to_exceed(std::span<const double> values, std::int64_t at,
                                       double target);

}  // namespace berth::experiment
