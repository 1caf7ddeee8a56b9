// The optimum with mixes of two accelerators, by the stages of optimal.cc. Each stage starts from
// the optimum of one accelerator a server, so that mixes never make a plan worse. A power budget is
// a row more, of which every candidate takes; then there are no mixes.
#include <algorithm>
#include <cmath>

#include "berth/base/result.h"
#include "berth/fleet/mixes.h"
#include "berth/fleet/packing.h"
#include "berth/fleet/solution.h"
#include "berth/fleet/system_view.h"

namespace berth::fleet {
namespace {

// Whole milliwatts, so that sums are exact, times a power of two, so that amounts of power are
// about as large as those of accelerators.
constexpr double kMilliwattsOfARow = 1 << 20, kWattsOfARow = kMilliwattsOfARow / 1000;
constexpr double kPowerRounding = 1e-6;  // milliwatts

double power_amount(const Candidate& candidate) {
  return std::ceil(1000 * candidate.watts - kPowerRounding) / kMilliwattsOfARow;
}

constexpr double kMixedOptimalityGap = 3e-4;  // of the cost: where a search among many ends

/// What a server may get: a mix, or replicas[1] = 0 and a candidate.
using Entry = Mix;

class MixedStages {
 public:
  MixedStages(const System& system, const Candidates& candidates,
              const std::vector<std::int64_t>& limits, const Execution& execution,
              const Optimum& start, std::optional<double> power_limit = {})
      : candidates_(candidates),
        limits_(limits.begin(), limits.end()),
        has_power_row_(power_limit),
        start_(start),
        entries_(candidates.servers.size()),
        chosen_(candidates.servers.size(), kUnserved) {
    budget_.iterations = execution.iteration_limit;
    budget_.stop = &execution.stop;
    if (power_limit) limits_.push_back(*power_limit);
    for_each(execution, entries_.size(), [&](std::size_t s) { fill(system, limits, s); });
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
      const Packed answer = run(problem, {}, budget_.iterations / 3);
      bound += static_cast<int>(std::lround(answer.bound));
      if (std::lround(answer.cost) == unserved) continue;
      unserved = static_cast<int>(std::lround(answer.cost));
      take_over(problem, answer);
      left = left_beside(priority);
    }
    Problem last = stage(kByValue);
    last.packing.close_enough = kMixedOptimalityGap * least_cost();
    const Packed answer = run(last, start_.prices, budget_.iterations);
    take_over(last, answer);
    optimum.bound = answer.bound;
    optimum.prices.assign(limits_.size(), 0);
    for (std::size_t type = 0; type < limits_.size(); ++type)
      if (const auto row = last.row_of_type[type]; row >= 0)
        optimum.prices[type] = answer.prices[static_cast<std::size_t>(row)];
    if (has_power_row_) {
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
    Packing packing;
    Chosen start;
    std::vector<std::size_t> servers;       // by group
    std::vector<std::int32_t> row_of_type;  // and of power; -1: there is more than can be used
  };

  /// What fits, and what the server starts with.
  void fill(const System& system, const std::vector<std::int64_t>& limits, std::size_t s) {
    auto& entries = entries_[s];
    std::vector<std::uint32_t> places;
    for (std::size_t i = candidates_.begin[s]; i < candidates_.begin[s + 1]; ++i)
      places.push_back(static_cast<std::uint32_t>(i));
    // Of equals the packing takes the first: where only the count matters, what draws the least.
    if (has_power_row_)
      std::ranges::stable_sort(places, {}, [&](auto i) { return candidates_.all[i].watts; });
    for (const std::uint32_t place : places) {
      const Candidate& c = candidates_.all[place];
      if (c.accelerator != Candidate::kNothing && c.units() > limits[type_of(place)]) continue;
      if (has_power_row_ && power_amount(c) > limits_.back()) continue;
      if (start_.solution[s].candidate == &c)
        chosen_[s] = static_cast<std::uint32_t>(entries.size());
      entries.push_back({{place, place}, {c.replicas, 0}, c.value});
    }
    if (has_power_row_) return;
    for (const Mix& mix : mixes_of(system, candidates_, s, limits)) entries.push_back(mix);
  }

  std::uint32_t type_of(std::uint32_t place) const {
    return candidates_.type_of[candidates_.all[place].accelerator];
  }

  /// What it takes of types; of one alone, nothing of the second, or power.
  std::array<Use, 2> uses_of(const Entry& entry) const {
    std::array<Use, 2> uses;
    for (std::size_t i = 0; i < 2; ++i) {
      const Candidate& c = candidates_.all[entry.places[i]];
      if (c.accelerator == Candidate::kNothing || entry.replicas[i] == 0) continue;
      uses[i] = {static_cast<std::int32_t>(type_of(entry.places[i])),
                 static_cast<double>(c.units_per_replica) * entry.replicas[i]};
    }
    if (uses[0].row == uses[1].row) uses[0].amount += std::exchange(uses[1], {}).amount;
    if (const Candidate& c = candidates_.all[entry.places[0]]; has_power_row_ && c.watts > 0)
      uses[1] = {static_cast<std::int32_t>(limits_.size() - 1), power_amount(c)};
    return uses;
  }

  /// Adds a row for each type of which there may be too little.
  void add_type_rows(Problem& problem) const {
    std::vector<double> most(limits_.size(), 0);
    for (const std::size_t s : problem.servers) {
      std::map<std::int32_t, double> most_of;
      for (const Entry& entry : entries_[s])
        for (const Use& use : uses_of(entry))
          if (use.row >= 0) most_of[use.row] = std::max(most_of[use.row], use.amount);
      for (const auto& [type, units] : most_of) most[static_cast<std::size_t>(type)] += units;
    }
    for (std::size_t type = 0; type < limits_.size(); ++type) {
      const bool scarce = most[type] > limits_[type];
      problem.row_of_type.push_back(
          scarce ? static_cast<std::int32_t>(problem.packing.limits.size()) : -1);
      if (scarce) problem.packing.limits.push_back(limits_[type]);
    }
  }

  /// The fewest unserved of a priority, or the least value, while those before are left with no
  /// more unserved than they have.
  Problem stage(int priority) const {
    Problem problem;
    Packing& packing = problem.packing;
    packing.whole_costs = priority != kByValue;
    for (std::size_t s = 0; s < entries_.size(); ++s)
      if (candidates_.priority[s] <= priority && !entries_[s].empty()) problem.servers.push_back(s);
    add_type_rows(problem);
    std::map<int, std::int32_t> count_rows;  // of priorities before; -1: all may be unserved
    for (const auto& [before, unserved] : unserved_) {
      if (before >= priority || unserved == 0) continue;
      const bool all = unserved >= servers_.at(before);
      count_rows[before] = all ? -1 : static_cast<std::int32_t>(packing.limits.size());
      if (!all) packing.limits.push_back(unserved);
    }
    for (const std::size_t s : problem.servers) {
      add_entries(problem, s);
      Item unserved{.tag = kUnserved};
      const auto row = count_rows.find(candidates_.priority[s]);
      if (row != count_rows.end()) unserved.uses[0] = {row->second, row->second < 0 ? 0.0 : 1.0};
      if (candidates_.priority[s] == priority) unserved.cost = 1;
      if (candidates_.priority[s] == priority || row != count_rows.end())
        add_item(problem, unserved);
      packing.begin.push_back(packing.items.size());
    }
    return problem;
  }

  void add_entries(Problem& problem, std::size_t s) const {
    problem.start.push_back(UINT32_MAX);
    for (std::uint32_t e = 0; e < entries_[s].size(); ++e) {
      const Entry& entry = entries_[s][e];
      Item item{
          .cost = problem.packing.whole_costs ? 0 : entry.value, .uses = uses_of(entry), .tag = e};
      if (problem.packing.whole_costs && e != chosen_[s] && is_dominated(s, e)) continue;
      for (Use& use : item.uses) {
        if (use.row >= 0) use.row = problem.row_of_type[static_cast<std::size_t>(use.row)];
        if (use.row < 0) use.amount = 0;
      }
      add_item(problem, item);
    }
  }

  void add_item(Problem& problem, const Item& item) const {
    if (item.tag == chosen_[problem.servers[problem.start.size() - 1]])
      problem.start.back() = static_cast<std::uint32_t>(problem.packing.items.size());
    problem.packing.items.push_back(item);
  }

  /// Whether another entry takes no more of any type: where only the count matters, that one will
  /// do.
  bool is_dominated(std::size_t s, std::uint32_t e) const {
    const auto own = uses_of(entries_[s][e]);
    for (std::uint32_t other = 0; other < entries_[s].size(); ++other) {
      const auto uses = uses_of(entries_[s][other]);
      const auto amount_of = [](const std::array<Use, 2>& in, std::int32_t type) {
        return in[0].row == type ? in[0].amount : in[1].row == type ? in[1].amount : 0;
      };
      const bool no_more = std::ranges::all_of(uses, [&](const Use& use) {
        return use.row < 0 || use.amount <= amount_of(own, use.row);
      });
      if (!no_more || other == e) continue;
      const bool alike = std::ranges::all_of(own, [&](const Use& use) {
        return use.row < 0 || use.amount <= amount_of(uses, use.row);
      });
      if (!alike || other < e) return true;
    }
    return false;
  }

  /// Roughly what the plan will cost: its servers each on the cheapest candidate.
  double least_cost() const {
    double sum = 0;
    for (std::size_t s = 0; s < chosen_.size(); ++s)
      if (chosen_[s] != kUnserved)
        sum += std::ranges::min(candidates_.of(s), {}, &Candidate::cost).cost;
    return sum;
  }

  Packed run(const Problem& problem, const std::vector<double>& price_of_type,
             std::int64_t iterations) {
    std::vector<double> prices(problem.packing.limits.size(), 0);
    for (std::size_t type = 0; type < price_of_type.size(); ++type)
      if (const auto row = problem.row_of_type[type]; row >= 0)
        prices[static_cast<std::size_t>(row)] = price_of_type[type];
    Budget part = budget_;
    part.iterations = iterations;
    Packed answer = pack(problem.packing, problem.start, prices, part);
    budget_.iterations -= iterations - part.iterations;
    budget_.stopped = part.stopped;
    return answer;
  }

  void take_over(const Problem& problem, const Packed& answer) {
    for (std::size_t g = 0; g < problem.servers.size(); ++g)
      chosen_[problem.servers[g]] = problem.packing.items[answer.chosen[g]].tag;
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
    const auto uses = uses_of(entries_[s][chosen_[s]]);
    if (std::ranges::any_of(uses, [&](const Use& use) {
          return use.row >= 0 && use.amount > left[static_cast<std::size_t>(use.row)];
        }))
      return false;
    for (const Use& use : uses)
      if (use.row >= 0) left[static_cast<std::size_t>(use.row)] -= use.amount;
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
  const bool has_power_row_;
  const Optimum& start_;
  Budget budget_;
  std::vector<std::vector<Entry>> entries_;  // by server
  std::vector<std::uint32_t> chosen_;        // by server: place in its entries
  std::map<int, int> servers_, infeasible_,
      unserved_;  // by priority: with entries, without, as found
};

}  // namespace

Optimum solve_mixed(const System& system, const Candidates& candidates,
                    const std::vector<std::int64_t>& limits, const Execution& execution,
                    const Optimum& start) {
  return MixedStages(system, candidates, limits, execution, start).solve();
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
  return MixedStages(system, candidates, limits, execution, start, limit).solve();
}

}  // namespace berth::fleet
