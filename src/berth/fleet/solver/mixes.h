// Two pools of replicas for one server. Here: replicas of two accelerators, its load split in
// proportion to the greatest rate that a replica of each takes within the targets.
//
// Pure; any thread.
#pragma once

#include <array>

#include "berth/fleet/fleet.h"

namespace berth::fleet {

struct Mix {
  // Indices into Candidates::all, ascending; of a split into the server's Candidates::pools, the
  // one that prefills before the one that decodes.
  std::array<std::uint32_t, 2> places{};
  std::array<std::int32_t, 2> replicas{};
  double value = 0;  // as Candidate::value
  bool is_split = false;
};
/// One of the two that a mix or a split of the server is made of.
inline const Candidate& side_of(const Candidates& candidates, std::size_t server, const Mix& mix,
                                std::size_t i) {
  return mix.is_split ? candidates.pools[server][mix.places[i]] : candidates.all[mix.places[i]];
}

/// The mixes of each pair of the server's candidates: some replicas of the candidate that would
/// need fewer alone, and as many of the other as the rest of the load takes. All numbers of
/// replicas are tried, or kMostSplits evenly spaced ones where there are more. Mixes that do not
/// fit the limits (by type) are left out, and so are dominated ones: another mix or a candidate
/// uses no more of any type and is no dearer. Batches and greatest rates are those of the
/// candidates.
inline constexpr int kMostSplits = 31;
std::vector<Mix> mixes_of(const System& system, const Candidates& candidates, std::size_t server,
                          std::span<const std::int64_t> limits);

/// The allocation of a mix. Each of its parts has the figures of a replica under its part of the
/// load.
Allocation allocation_of(const System& system, const Candidates& candidates, std::size_t server,
                         const Mix& mix);

}  // namespace berth::fleet
