// Which measurements would tell most about the parameters.
#pragma once

#include <vector>

#include "berth/fleet/fit.h"
#include "berth/fleet/least_squares.h"

namespace berth::fleet {

struct NextMeasurements {
  std::vector<Proposal> proposals;
  Terms standard_error{};  // that would be left
};
/// The two closed loops, of a grid of requests side by side and lengths of prompts, that together
/// reduce the volume of uncertainty most (D-optimality; Fedorov, 1972). `information` is that of
/// the measurements so far, Σ x·xᵀ over their variance; of the mean between two tokens and to the
/// first one a measurement is expected to be right to 2 % and 4 %.
/// Loads of more than `most_context` tokens side by side are not proposed: the server may not hold
/// them.
NextMeasurements measure_next(const FitParameters& parameters, const TermMatrix& information,
                              const TermMask& mask, double out_tokens, double most_context);

}  // namespace berth::fleet
