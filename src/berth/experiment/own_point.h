// A point that a person adds to a search. Pure.
#pragma once

#include <string>
#include <string_view>

#include "berth/base/rng.h"
#include "berth/experiment/program.h"

namespace berth::experiment {

/// What a person wrote: "lr=0.1 net=deep", or "{lr: 0.1, net: a b}". Errors: invalid.
Result<Values> read_own_point(std::string_view text);

/// invalid: the search has a budget, which it gives out itself, or a value lies outside the space;
/// a name that the space lacks does unless the space `grows`.
Status check_own_point(const Program& program, const Values& given, bool grows);

/// The point in the order of the space. What it lacks it has from `proposed`, and what that lacks
/// by chance.
Values completed(const std::vector<Parameter>& params, const Values& given, const Values& proposed,
                 Rng& rng);

/// "one of a, b", or "0.1..1, log".
std::string space_text(const Parameter& parameter);

}  // namespace berth::experiment
