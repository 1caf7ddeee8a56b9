// Replicas of two accelerators for one server, its load split in proportion to the greatest rate
// that a replica of each takes within the targets.
//
// Pure; any thread.
#pragma once

#include <array>

#include "berth/fleet/fleet.h"

namespace berth::fleet {

struct Mix {
  std::array<std::uint32_t, 2> places{};  // in Candidates::all, ascending
  std::array<std::int32_t, 2> replicas{};
  double value = 0;  // as a candidate's
};

/// Of each pair of the server's candidates: some replicas of the one of which fewer would do alone,
/// and as many of the other as take the rest. Every such number is looked at, or where it is large
/// kMostSplits of them, evenly spaced. Without those that do not fit the limits (by type), and
/// those to which another, or a candidate, is to be preferred: of no more of any type, and no
/// dearer. The candidates' own batches and greatest rates hold.
inline constexpr int kMostSplits = 31;
std::vector<Mix> mixes_of(const System& system, const Candidates& candidates, std::size_t server,
                          std::span<const std::int64_t> limits);

/// With its parts, each with the figures of a replica under its part of the load.
Allocation allocation_of(const System& system, const Candidates& candidates, std::size_t server,
                         const Mix& mix);

}  // namespace berth::fleet
