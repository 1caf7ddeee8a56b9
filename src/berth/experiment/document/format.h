// The format of experiment files as tables: what read_program() accepts, and what `berth schema
// experiment` prints.
#pragma once

#include <array>

#include "berth/base/format.h"

namespace berth::experiment {

extern const MapFormat kExperimentFormat;
extern const MapFormat kSearchFormat, kBudgetFormat, kRangeFormat, kChoicesFormat, kGoalFormat;
/// Of each EarlyStop::Policy, in the order of its names.
extern const std::array<MapFormat, 4> kEarlyStopFormats;

}  // namespace berth::experiment
