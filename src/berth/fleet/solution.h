// What the solvers give: for each server one of its candidates and how many replicas of it, or a
// mix of two.
#pragma once

#include "berth/fleet/fleet.h"
#include "berth/fleet/mixes.h"

namespace berth::fleet {

struct Pick {
  const Candidate* candidate = nullptr;  // into Candidates::all; none: not served
  int replicas = 0;                      // fewer than the candidate's: best effort
  std::optional<Mix> mix{};              // instead of a candidate
  bool serves() const { return mix || (candidate != nullptr && replicas == candidate->replicas); }
};
using Solution = std::vector<Pick>;  // by server

/// The tag of the option of not being served.
inline constexpr std::uint32_t kUnserved = UINT32_MAX;

/// By type: how many there are.
std::vector<std::int64_t> limits_of(const System& system, const Candidates& candidates);

/// Of each server the candidate of the least value.
Solution solve_unlimited(const Candidates& candidates);
/// By priority, then by how much more value the next best has.
Solution solve_greedy(const Candidates& candidates, std::vector<std::int64_t> limits,
                      const Options& options);

struct Optimum {
  Solution solution;
  std::map<int, int> unserved_bound;
  double bound = 0;
  std::vector<double> prices;  // by type: what value one more would save
  bool stopped = false;
};
/// Fewest unserved of the highest priority, then of the next, …, then the least value.
Optimum solve_optimal(const Candidates& candidates, const std::vector<std::int64_t>& limits,
                      const Means& means);
/// The same with mixes, by the way of `start`, an optimum without; as a packing's its proof.
Optimum solve_mixed(const System& system, const Candidates& candidates,
                    const std::vector<std::int64_t>& limits, const Means& means,
                    const Optimum& start);

}  // namespace berth::fleet
