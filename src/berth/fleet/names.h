// How a fleet document and the command line spell the choices.
#pragma once

#include <array>

#include "berth/fleet/fleet.h"

namespace berth::fleet {

inline constexpr std::array<std::string_view, 2> kModels{"calibrated", "reference"};
inline constexpr std::array<std::string_view, 3> kSolvers{"optimal", "greedy", "unlimited"};
inline constexpr std::array<std::string_view, 4> kSaturations{"None", "PriorityExhaustive",
                                                              "PriorityRoundRobin", "RoundRobin"};

}  // namespace berth::fleet
