// The points of a discrete space that were not tried yet. Pure.
#pragma once

#include <optional>
#include <set>

#include "berth/experiment/proposers/sampler.h"

namespace berth::experiment {

/// Returns true if the space has a finite number of points: each parameter has choices, integers or
/// steps, and trials add no parameters.
bool has_end(const Program& program);

/// The point, or the nearest one that is not among those tried. nullopt: all points of the space
/// were tried. Takes time in proportion to the tried points that are nearer.
std::optional<Values> nearest_untried(const std::vector<Parameter>& params, Values point,
                                      const std::set<Parts>& tried);

}  // namespace berth::experiment
