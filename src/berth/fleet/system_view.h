// What of a system several parts of the storey ask.
#pragma once

#include "berth/fleet/fleet.h"

namespace berth::fleet {

inline constexpr int kMostReplicas = 10'000'000;
inline constexpr int kLowestPriority = 100;

/// The server's class, or Free.
std::string class_of(const Server& server);
/// That of its class; the lowest where it is not known.
int priority_of(const System& system, const Server& server);
/// Requests a ms that the server is planned for; 0: it is idle.
double rate_per_ms(const Load& load, const Target& target, QueueModel model);
bool keeps_another(const Server& server, std::string_view accelerator);

Status check(const Load& load);
Status check(const Allocation& allocation);

/// `replicas` of a candidate, with the figures of one under its part of the load.
Allocation allocation_of(const System& system, const Candidates& candidates, const Server& server,
                         const Candidate& candidate, int replicas);

/// body(0) … body(count − 1), with what threads there are.
void for_each(const Means& means, std::size_t count, const std::function<void(std::size_t)>& body);

}  // namespace berth::fleet
