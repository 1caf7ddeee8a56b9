// A point that a person adds to a search. Pure.
#pragma once

#include <string>
#include <string_view>

#include "berth/base/rng.h"
#include "berth/experiment/program.h"

namespace berth::experiment {

/// What a person wrote: "lr=0.1 net=deep", or "{lr: 0.1, net: a b}". Errors: invalid.
Result<Values> read_own_point(std::string_view text);

/// The point with each value as the space writes it: 2 of integers for 2.0. Errors: invalid if the
/// search has a budget, which it gives out itself, or if the space does not have a value. A name
/// that the space lacks is an error unless the space `grows`.
Result<Values> check_own_point(const Program& program, Values given, bool grows);

/// "n: 2.5 lies between the values of 1..10, int": the space does not have this value.
std::unexpected<Error> not_in_space(const Parameter& parameter, const std::string& value);

/// The point in the order of the space. What it lacks it has from `proposed`, and what that lacks
/// by chance.
Values completed(const std::vector<Parameter>& params, const Values& given, const Values& proposed,
                 Rng& rng);

/// "one of a, b", "0.1..1, log", or "0..1 in steps of 0.25".
std::string space_text(const Parameter& parameter);

}  // namespace berth::experiment
