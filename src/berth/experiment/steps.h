// The points of a range with a step. They are computed in decimal digits, so that they are what a
// person would write: from 0 in steps of 0.1 the third point is 0.3, not 0.30000000000000004. Pure.
#pragma once

#include <cstdint>

namespace berth::experiment {

/// The number of whole steps between `min` and `max`; a last step that lacks at most a billionth of
/// itself counts as whole.
std::int64_t whole_steps(double min, double max, double step);

/// min + index * step.
double step_point(double min, double step, std::int64_t index);

}  // namespace berth::experiment
