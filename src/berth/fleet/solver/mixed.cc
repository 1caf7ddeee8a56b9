// The optimum with mixes of two accelerators, and with splits, by the stages of optimal.cc. Each
// stage starts from the optimum of one accelerator a server, so that these never make a plan worse.
// A power budget is a row more, of which every candidate takes; then there are none.
#include <algorithm>
#include <cmath>

#include "berth/base/result.h"
#include "berth/fleet/model/system_view.h"
#include "berth/fleet/solver/knapsack.h"
#include "berth/fleet/solver/mixes.h"
#include "berth/fleet/solver/solution.h"
#include "berth/fleet/solver/splits.h"

namespace berth::fleet {
namespace {

// Whole milliwatts, so that sums are exact, over a power of two, so that amounts of power are
// about as large as those of accelerators.
constexpr double kMilliwattsOfARow = 1 << 20, kWattsOfARow = kMilliwattsOfARow / 1000;
constexpr double kPowerRounding = 1e-6;  // milliwatts

double power_amount(const Candidate& candidate) {
  return std::ceil(1000 * candidate.watts - kPowerRounding) / kMilliwattsOfARow;
}

constexpr double kMixedOptimalityGap = 1e-4;  // of the cost: where a search among many ends

/// What a server may get: a mix, a split, or replicas[1] = 0 and a candidate.
using Entry = Mix;

class MixedStages {
 public:
  MixedStages(const System& system, const Candidates& candidates,
              const std::vector<std::int64_t>& limits, const Options& options,
              const Execution& execution, const Optimum& start,
              std::optional<double> power_limit = {})
      : candidates_(candidates),
        limits_(limits.begin(), limits.end()),
        start_(start),
        entries_(candidates.servers.size()),
        chosen_(candidates.servers.size(), kUnserved) {
    budget_.iterations = execution.iteration_limit;
    budget_.stop = &execution.stop;
    if (power_limit) limits_.push_back(*power_limit);
    for_each(execution, entries_.size(), [&](std::size_t s) { fill(system, limits, options, s); });
    for (std::size_t s = 0; s < entries_.size(); ++s) {
      const int priority = candidates.priority[s];
      ++(entries_[s].empty() ? infeasible_ : servers_)[priority];
      unserved_[priority];
    }
  }

  Optimum solve() {
    Optimum optimum;
    std::vector<double> left = limits_;
    for (auto& [priority, unserved] : unserved_) {
      int& bound = optimum.unserved_bound[priority];
      bound = infeasible_[priority];
      unserved = keep_what_fits(priority, left);
      if (unserved == 0) continue;
      const Problem problem = stage(priority);
      const Answer answer = run(problem, budget_.iterations / 2);
      bound += static_cast<int>(std::lround(answer.bound));
      if (std::lround(answer.cost) == unserved) continue;
      unserved = static_cast<int>(std::lround(answer.cost));
      take_over(problem, answer);
      left = left_beside(priority);
    }
    Problem last = stage(kByValue);
    last.knapsack.close_enough = kMixedOptimalityGap * least_cost();
    const Answer answer = run(last, budget_.iterations);
    take_over(last, answer);
    optimum.bound = answer.bound;
    optimum.prices.assign(limits_.size(), 0);
    for (std::size_t type = 0; type < limits_.size(); ++type)
      if (const auto row = last.row_of_type[type]; row >= 0)
        optimum.prices[type] = answer.prices[static_cast<std::size_t>(row)];
    if (has_power_row()) {
      optimum.power_price = optimum.prices.back() / kWattsOfARow;
      optimum.prices.pop_back();
    }
    for (std::size_t s = 0; s < entries_.size(); ++s) optimum.solution.push_back(pick_of(s));
    optimum.stopped = start_.stopped || budget_.stopped;
    return optimum;
  }

 private:
  static constexpr int kByValue = INT32_MAX;  // behind all priorities

  struct Problem {
    Knapsack knapsack;
    Chosen start;
    std::vector<std::size_t> servers;       // by group
    std::vector<std::int32_t> row_of_type;  // and of power; -1: there is more than can be used
  };

  /// What fits, and what the server starts with.
  void fill(const System& system, const std::vector<std::int64_t>& limits, const Options& options,
            std::size_t s) {
    auto& entries = entries_[s];
    for (std::size_t i = candidates_.begin[s]; i < candidates_.begin[s + 1]; ++i) {
      const Candidate& c = candidates_.all[i];
      const auto place = static_cast<std::uint32_t>(i);
      if (c.accelerator != Candidate::kNothing && c.units() > limits[type_of(place)]) continue;
      if (has_power_row() && power_amount(c) > limits_.back()) continue;
      if (start_.solution[s].candidate == &c)
        chosen_[s] = static_cast<std::uint32_t>(entries.size());
      entries.push_back({{place, place}, {c.replicas, 0}, c.value});
    }
    if (has_power_row()) return;
    if (options.heterogeneous)
      for (const Mix& mix : mixes_of(system, candidates_, s, limits)) entries.push_back(mix);
    if (options.disaggregated)
      for (const Mix& split : splits_of(system, candidates_, s, limits)) entries.push_back(split);
  }

  std::uint32_t power_row() const { return static_cast<std::uint32_t>(candidates_.types.size()); }
  bool has_power_row() const { return limits_.size() > power_row(); }

  std::uint32_t type_of(std::uint32_t place) const {
    return candidates_.type_of[candidates_.all[place].accelerator];
  }

  /// What it takes of types and of power, which stand in place of rows.
  std::vector<Use> uses_of(std::size_t s, const Entry& entry) const {
    std::vector<Use> uses;
    for (std::size_t i = 0; i < 2; ++i) {
      const Candidate& c = side_of(candidates_, s, entry, i);
      if (c.accelerator == Candidate::kNothing || entry.replicas[i] == 0) continue;
      const Use use{candidates_.type_of[c.accelerator],
                    static_cast<double>(c.units_per_replica) * entry.replicas[i]};
      if (!uses.empty() && uses[0].row == use.row)
        uses[0].amount += use.amount;
      else
        uses.push_back(use);
    }
    if (const Candidate& c = side_of(candidates_, s, entry, 0); has_power_row() && c.watts > 0)
      uses.push_back({power_row(), power_amount(c)});
    return uses;
  }

  /// Adds a row for each type of which there may be too little.
  void add_type_rows(Problem& problem) const {
    std::vector<double> most(limits_.size(), 0);
    for (const std::size_t s : problem.servers) {
      std::map<std::uint32_t, double> most_of;
      for (const Entry& entry : entries_[s])
        for (const Use& use : uses_of(s, entry))
          most_of[use.row] = std::max(most_of[use.row], use.amount);
      for (const auto& [type, units] : most_of) most[type] += units;
    }
    for (std::size_t type = 0; type < limits_.size(); ++type) {
      const bool scarce = most[type] > limits_[type];
      const RowKind kind = type == power_row() ? RowKind::any : RowKind::whole;
      problem.row_of_type.push_back(
          scarce ? static_cast<std::int32_t>(problem.knapsack.add_row(limits_[type], kind)) : -1);
    }
  }

  /// The fewest unserved of a priority, or the least value, while those before are left with no
  /// more unserved than they have.
  Problem stage(int priority) const {
    Problem problem;
    Knapsack& knapsack = problem.knapsack;
    knapsack.whole_costs = priority != kByValue;
    for (std::size_t s = 0; s < entries_.size(); ++s)
      if (candidates_.priority[s] <= priority && !entries_[s].empty()) problem.servers.push_back(s);
    add_type_rows(problem);
    std::map<int, std::int32_t> count_rows;  // of priorities before; -1: all may be unserved
    for (const auto& [before, unserved] : unserved_) {
      if (before >= priority || unserved == 0) continue;
      const bool all = unserved >= servers_.at(before);
      count_rows[before] = all ? -1 : static_cast<std::int32_t>(knapsack.add_row(unserved));
    }
    for (const std::size_t s : problem.servers) {
      add_entries(problem, s);
      std::vector<Use> uses;
      const auto row = count_rows.find(candidates_.priority[s]);
      if (row != count_rows.end() && row->second >= 0)
        uses.push_back({static_cast<std::uint32_t>(row->second), 1});
      const bool counts = candidates_.priority[s] == priority;
      if (counts || row != count_rows.end()) add_option(problem, counts ? 1 : 0, uses, kUnserved);
      knapsack.end_group();
    }
    return problem;
  }

  void add_entries(Problem& problem, std::size_t s) const {
    problem.start.push_back(UINT32_MAX);
    for (std::uint32_t e = 0; e < entries_[s].size(); ++e) {
      const Entry& entry = entries_[s][e];
      if (problem.knapsack.whole_costs && e != chosen_[s] && is_dominated(s, e)) continue;
      std::vector<Use> uses;
      for (const Use& use : uses_of(s, entry))
        if (const auto row = problem.row_of_type[use.row]; row >= 0)
          uses.push_back({static_cast<std::uint32_t>(row), use.amount});
      add_option(problem, problem.knapsack.whole_costs ? 0 : entry.value, uses, e);
    }
  }

  void add_option(Problem& problem, double cost, std::span<const Use> uses,
                  std::uint32_t tag) const {
    if (tag == chosen_[problem.servers[problem.start.size() - 1]])
      problem.start.back() = static_cast<std::uint32_t>(problem.knapsack.options.size());
    problem.knapsack.add(cost, uses, tag);
  }

  /// Whether another entry takes no more of any type: where only the count matters, that one will
  /// do.
  bool is_dominated(std::size_t s, std::uint32_t e) const {
    const auto own = uses_of(s, entries_[s][e]);
    for (std::uint32_t other = 0; other < entries_[s].size(); ++other) {
      const auto uses = uses_of(s, entries_[s][other]);
      const auto amount_of = [](const std::vector<Use>& in, std::uint32_t type) {
        const auto at = std::ranges::find(in, type, &Use::row);
        return at == in.end() ? 0 : at->amount;
      };
      const bool no_more = std::ranges::all_of(
          uses, [&](const Use& use) { return use.amount <= amount_of(own, use.row); });
      if (!no_more || other == e) continue;
      const bool alike = std::ranges::all_of(
          own, [&](const Use& use) { return use.amount <= amount_of(uses, use.row); });
      if (!alike || other < e) return true;
    }
    return false;
  }

  /// Roughly what the plan will cost: its servers each on the cheapest candidate.
  double least_cost() const {
    double sum = 0;
    for (std::size_t s = 0; s < chosen_.size(); ++s)
      if (chosen_[s] != kUnserved && !candidates_.of(s).empty())
        sum += std::ranges::min(candidates_.of(s), {}, &Candidate::cost).cost;
    return sum;
  }

  Answer run(const Problem& problem, std::int64_t iterations) {
    Budget part = budget_;
    part.iterations = iterations;
    Answer answer = fleet::solve(problem.knapsack, problem.start, part);
    budget_.iterations -= iterations - part.iterations;
    budget_.stopped = part.stopped;
    return answer;
  }

  void take_over(const Problem& problem, const Answer& answer) {
    for (std::size_t g = 0; g < problem.servers.size(); ++g)
      chosen_[problem.servers[g]] = problem.knapsack.options[answer.chosen[g]].tag;
  }

  /// Takes the rest from the servers of a priority for whom too little is left of it since those
  /// before got more. How many are unserved.
  int keep_what_fits(int priority, std::vector<double>& left) {
    int unserved = 0;
    for (std::size_t s = 0; s < entries_.size(); ++s) {
      if (candidates_.priority[s] != priority || entries_[s].empty()) continue;
      if (chosen_[s] != kUnserved && !take(s, left)) chosen_[s] = kUnserved;
      unserved += chosen_[s] == kUnserved ? 1 : 0;
    }
    return unserved;
  }

  /// Whether there was enough left for the server.
  bool take(std::size_t s, std::vector<double>& left) const {
    const auto uses = uses_of(s, entries_[s][chosen_[s]]);
    if (std::ranges::any_of(uses, [&](const Use& use) { return use.amount > left[use.row]; }))
      return false;
    for (const Use& use : uses) left[use.row] -= use.amount;
    return true;
  }

  std::vector<double> left_beside(int last) const {
    std::vector<double> left = limits_;
    for (std::size_t s = 0; s < entries_.size(); ++s)
      if (candidates_.priority[s] <= last && chosen_[s] != kUnserved) BERTH_ASSERT(take(s, left));
    return left;
  }

  Pick pick_of(std::size_t s) const {
    if (chosen_[s] == kUnserved) return {};
    const Entry& entry = entries_[s][chosen_[s]];
    if (entry.replicas[1] > 0) return {.mix = entry};
    return {&candidates_.all[entry.places[0]], entry.replicas[0], {}};
  }

  const Candidates& candidates_;
  std::vector<double> limits_;  // by type, with that of power behind
  const Optimum& start_;
  Budget budget_;
  std::vector<std::vector<Entry>> entries_;  // by server
  std::vector<std::uint32_t> chosen_;        // by server: place in its entries
  std::map<int, int> servers_, infeasible_,
      unserved_;  // by priority: with entries, without, as found
};

}  // namespace

Optimum solve_mixed(const System& system, const Candidates& candidates,
                    const std::vector<std::int64_t>& limits, const Options& options,
                    const Execution& execution, const Optimum& start) {
  return MixedStages(system, candidates, limits, options, execution, start).solve();
}

Optimum solve_within_power(const System& system, const Candidates& candidates,
                           const std::vector<std::int64_t>& limits, double power_w,
                           const Execution& execution) {
  Optimum start = solve_optimal(candidates, limits, execution);
  double drawn_w = 0;
  for (const Pick& pick : start.solution)
    if (pick.candidate != nullptr) drawn_w += pick.candidate->watts;
  if (drawn_w <= power_w) return start;
  const double limit = std::floor(1000 * power_w + kPowerRounding) / kMilliwattsOfARow;
  return MixedStages(system, candidates, limits, {}, execution, start, limit).solve();
}

}  // namespace berth::fleet
