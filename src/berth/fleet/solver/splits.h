// Replicas that prefill and replicas that decode for one server: every request goes through one of
// each, and its prompt's cache from the one to the other
// (docs/explanation/fleet-solvers.md).
//
// Pure; any thread.
#pragma once

#include "berth/fleet/solver/mixes.h"

namespace berth::fleet {

/// The splits of each pool that prefills with each that decodes, in Candidates::pools. Those that
/// do not fit the limits (by type) are left out, and so are dominated ones: another split or a
/// candidate uses no more of any type and is no dearer. Where the server is to have more replicas
/// than both pools need, the rest goes to either in every way, or in kMostSplits evenly spaced ones
/// where there are more.
std::vector<Mix> splits_of(const System& system, const Candidates& candidates, std::size_t server,
                           std::span<const std::int64_t> limits);

/// The allocation of a split. Each of its parts has the figures of a replica of the pool.
Allocation allocation_of_split(const System& system, const Candidates& candidates,
                               std::size_t server, const Mix& split);

}  // namespace berth::fleet
