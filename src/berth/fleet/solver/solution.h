// The result of the solvers: for each server one of its candidates and a number of replicas, or a
// mix of two candidates, or a split.
#pragma once

#include "berth/fleet/fleet.h"
#include "berth/fleet/solver/mixes.h"

namespace berth::fleet {

struct Pick {
  const Candidate* candidate = nullptr;  // in Candidates::all; null: not served
  int replicas = 0;                      // fewer than the candidate has: best effort
  std::optional<Mix> mix{};              // or a split, instead of a candidate
  bool is_spot = false;                  // of capacity that may be taken away
  bool serves() const { return mix || (candidate != nullptr && replicas == candidate->replicas); }
};
using Solution = std::vector<Pick>;  // by server

/// The tag of the option that leaves a server unserved.
inline constexpr std::uint32_t kUnserved = UINT32_MAX;

/// The number of accelerators, by type.
std::vector<std::int64_t> limits_of(const System& system, const Candidates& candidates);

/// For people: why the server, which is the candidates' number s, has no candidate.
std::string why_no_candidate(const Server& server, const Candidates& candidates, std::size_t s);

/// Gives each server its candidate of the least value.
Solution solve_unlimited(const Candidates& candidates);
/// Serves by priority, then by how much more value the next best candidate has.
Solution solve_greedy(const Candidates& candidates, std::vector<std::int64_t> limits,
                      const Options& options);

struct Optimum {
  Solution solution;
  std::map<int, int> unserved_bound;
  double bound = 0;
  std::vector<double> prices;         // by type: the value that one more accelerator would save
  double power_price = 0;             // the value that one more watt would save
  std::vector<double> spot_prices{};  // by type: the value that one more of spot would save
  bool stopped = false;
};
/// What is used of a type costs nothing for the first units, and the price for each further one.
struct Step {
  std::int64_t free = 0;
  double price = 0;  // 0: there is no such cost
};
/// Minimises the unserved servers of the highest priority, then of the next, …, then the value.
/// `steps`: by type, beside the candidates' values; or none.
Optimum solve_optimal(const Candidates& candidates, const std::vector<std::int64_t>& limits,
                      const Execution& execution, const std::vector<Step>& steps = {});
/// The same with the mixes and splits that the options ask for, from `start`, an optimum without
/// them.
Optimum solve_mixed(const System& system, const Candidates& candidates,
                    const std::vector<std::int64_t>& limits, const Options& options,
                    const Execution& execution, const Optimum& start);
/// The same as solve_optimal() among plans that draw no more than `power_w`. Each server counts in
/// whole milliwatts, rounded up.
Optimum solve_within_power(const System& system, const Candidates& candidates,
                           const std::vector<std::int64_t>& limits, double power_w,
                           const Execution& execution);

}  // namespace berth::fleet
