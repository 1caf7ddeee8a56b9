// Which measurements would tell most about the parameters.
#pragma once

#include "berth/fleet/fit/fit.h"
#include "berth/fleet/fit/least_squares.h"

namespace berth::fleet {

/// Standard deviations that are expected of a mean between two tokens and of one to the first,
/// parts of these.
inline constexpr double kItlNoise = 0.02, kTtftNoise = 0.04;

/// The two closed loops, of a grid of requests side by side and lengths of prompts, that together
/// reduce the volume of uncertainty most (D-optimality; Fedorov, 1972). `information` is that of
/// the measurements so far, Σ x·xᵀ over their variance.
/// Loads of more than `most_context` tokens side by side are not proposed: the server may not hold
/// them.
NextMeasurements next_measurements(const FitParameters& parameters, const TermMatrix& information,
                                   const TermMask& mask, double out_tokens, double most_context);

}  // namespace berth::fleet
