// A planned day, replayed: the simulator serves the requests that the day was made of with the
// replicas that each of its plans has. docs/explanation/fleet-days.md, "A day".
//
// Pure; any thread. The same arguments give the same bytes, whatever executes them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "berth/fleet/day/day.h"
#include "berth/fleet/simulate/served_trace.h"

namespace berth::fleet {

/// What one server gets of the trace, under the day's plans.
struct ReplayedServer {
  std::size_t server = 0;           // of Day::servers
  std::array<Attainment, 3> plans;  // static, greedy, the whole day
};

/// By name, without those that get no request. Each server gets its part of the trace (0..1, in all
/// 1), drawn at random. `day` is planned with these options, out of profile_of() the same trace and
/// parts. A replica serves Day::batches at once. What arrives while a server has no replica that is
/// up is lost; what an accelerator has begun when another takes its place it ends. Errors:
/// not_found: a server that is not known; invalid: more replicas than can be simulated.
Result<std::vector<ReplayedServer>> replay_day(const System& system, const Day& day,
                                               const DayOptions& options,
                                               std::span<const Request> trace,
                                               const std::map<std::string, double>& parts,
                                               std::uint64_t seed, const Execution& execution = {});

}  // namespace berth::fleet
