// The types of berth/fleet.h from and to those of the planner. Pure.
#pragma once

#include "berth/fleet.h"
#include "berth/fleet/fleet.h"
#include "berth/fleet/solver/server_size.h"

namespace berth::library {

Fleet::Options options_of(const fleet::Options& options);
/// Errors: invalid for a number that is no choice.
Result<fleet::Options> options_of(const Fleet::Options& options);

Fleet::Allocation allocation_of(const fleet::Allocation& allocation);
/// What the public type lacks (histograms of lengths) is that of `like`, which the server has.
/// Errors: invalid, with the field: not finite, or below 0.
Result<fleet::Allocation> allocation_of(const Fleet::Allocation& allocation,
                                        const fleet::Allocation& like);
Result<fleet::Load> load_of(const Fleet::Load& load, const fleet::Load& like);
/// Accelerators, replicas and costs alone.
fleet::Allocation priced(const Fleet::Allocation& allocation);

Fleet::Candidate candidate_of(const std::string& accelerator, const fleet::SizedAllocation& sized);
Fleet::Plan plan_of(const fleet::Plan& plan);

}  // namespace berth::library
