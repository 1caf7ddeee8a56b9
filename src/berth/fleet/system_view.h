// Questions about a system that several files of the storey ask.
#pragma once

#include "berth/fleet/fleet.h"

namespace berth::fleet {

inline constexpr int kMostReplicas = 10'000'000;
inline constexpr int kLowestPriority = 100;
inline constexpr double kMostVariation = 20;  // of what varies, standard deviation / mean

/// The server's class, or Free.
std::string class_of(const Server& server);
/// The priority of the server's class; the lowest if the class is not known.
int priority_of(const System& system, const Server& server);
/// The load that the server is planned for, in requests a millisecond; 0: it is idle.
double rate_per_ms(const Load& load, const Target& target, QueueModel model);
bool keeps_another(const Server& server, std::string_view accelerator);

Status check(const Load& load);
Status check(const Allocation& allocation);

/// The allocation of `replicas` of a candidate, with the figures of one under its part of the load.
Allocation allocation_of(const System& system, const Candidates& candidates, const Server& server,
                         const Candidate& candidate, int replicas);

/// Calls body(0) … body(count − 1) through execution.parallel_for.
void for_each(const Execution& execution, std::size_t count,
              const std::function<void(std::size_t)>& body);

}  // namespace berth::fleet
