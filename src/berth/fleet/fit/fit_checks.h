// How far parameters are off what was measured.
#pragma once

#include <span>
#include <vector>

#include "berth/fleet/fit/fit.h"
#include "berth/fleet/fit/observations.h"

namespace berth::fleet {

/// Of the phases that there are observations of.
std::vector<PhaseErrors> phase_errors(const FitParameters& parameters,
                                      std::span<const Observation> all);

/// Each point that is used; `all` are the observations of all, as observations() makes them.
std::vector<PointCheck> check_points(const FitParameters& parameters, const Measured& measured,
                                     std::span<const PointUse> use,
                                     std::span<const Observation> all);

}  // namespace berth::fleet
