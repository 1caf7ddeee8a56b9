// The optimum in stages: for each priority, from the highest, the fewest servers that must stay
// unserved while no higher priority has more unserved servers than necessary; then the least value
// with these counts. Every stage is a multiple-choice knapsack (knapsack.h).
#include <algorithm>
#include <array>
#include <climits>
#include <cmath>

#include "berth/base/result.h"
#include "berth/fleet/solver/knapsack.h"
#include "berth/fleet/solver/solution.h"

namespace berth::fleet {
namespace {

constexpr double kOptimalityGap = 1e-4;         // of the cost: where a search among many ends
constexpr std::int64_t kLeastShare = 2;         // of what is left for a stage: a half at most
constexpr double kIntegralityTolerance = 1e-6;  // of whole numbers

class Stages {
 public:
  Stages(const Candidates& candidates, const std::vector<std::int64_t>& limits,
         const Execution& execution, const std::vector<Step>& steps)
      : candidates_(candidates),
        limits_(limits),
        steps_(steps),
        chosen_(candidates.servers.size(), kUnserved) {
    budget_.iterations = execution.iteration_limit;
    budget_.stop = &execution.stop;
    for (std::size_t s = 0; s < candidates.servers.size(); ++s) {
      const int priority = candidates.priority[s];
      options_.push_back(undominated_candidates(s));
      unserved_[priority];
      may_stay_unserved_.push_back(true);
      is_infeasible_.push_back(options_[s].empty());
      ++(options_[s].empty() ? infeasible_ : servers_)[priority];
    }
  }

  Optimum solve() {
    Optimum optimum;
    if (!serve_all()) {
      auto stages = static_cast<std::int64_t>(unserved_.size()) + 1;  // that are still to come
      for (auto& [priority, unserved] : unserved_) {
        const Problem problem = stage(priority, priority);
        const Answer answer = run(
            problem, budget_.iterations / std::max<std::int64_t>(kLeastShare, 2 * stages-- / 3));
        keep(problem, answer);
        eliminate_options(problem, answer, priority);
        unserved = static_cast<int>(std::lround(answer.cost));
        optimum.unserved_bound[priority] = static_cast<int>(std::lround(answer.bound));
        proven_[priority] = optimum.unserved_bound[priority];
      }
    }
    Problem last = value_stage();
    last.knapsack.close_enough = kOptimalityGap * least_cost();
    const Answer answer = run(last, budget_.iterations);
    keep(last, answer);
    optimum.bound = answer.bound;
    optimum.prices.assign(candidates_.types.size(), 0);
    for (std::size_t type = 0; type < last.row_of_type.size(); ++type)
      if (const auto row = last.row_of_type[type]; row >= 0)
        optimum.prices[type] = answer.prices[static_cast<std::size_t>(row)];
    for (const auto& [priority, unserved] : unserved_)
      optimum.unserved_bound[priority] += infeasible_[priority];
    optimum.solution.resize(chosen_.size());
    for (std::size_t s = 0; s < chosen_.size(); ++s)
      if (chosen_[s] != kUnserved) {
        const Candidate& c = candidates_.all[chosen_[s]];
        optimum.solution[s] = {&c, c.replicas};
      }
    optimum.stopped = budget_.stopped;
    return optimum;
  }

 private:
  struct Problem {
    Knapsack knapsack;
    Chosen start;
    std::vector<std::size_t> servers;       // by group
    std::vector<std::int32_t> row_of_type;  // -1: there is more than can be used
    // That counts its unserved; -1 where all may be; none where none may be, or in the objective.
    std::map<int, std::int32_t> row_of_priority;
    // That counts those served who might have stayed unserved: as many as are proven to must.
    std::map<int, std::int32_t> served_row_of_priority;
  };

  /// The server's candidates that fit and that no other of the same type dominates, as indices into
  /// Candidates::all.
  std::vector<std::uint32_t> undominated_candidates(std::size_t s) const {
    std::vector<std::uint32_t> kept;
    const auto type_of = [&](const Candidate& c) {
      return c.accelerator == Candidate::kNothing
                 ? -1
                 : static_cast<std::int64_t>(candidates_.type_of[c.accelerator]);
    };
    for (std::size_t i = candidates_.begin[s]; i < candidates_.begin[s + 1]; ++i) {
      const Candidate& c = candidates_.all[i];
      if (type_of(c) >= 0 && c.units() > limits_[static_cast<std::size_t>(type_of(c))]) continue;
      const auto dominates = [&](std::size_t j) {
        const Candidate& d = candidates_.all[j];
        if (i == j || type_of(c) != type_of(d) || d.units() > c.units() || d.value > c.value)
          return false;
        return d.units() < c.units() || d.value < c.value || j < i;
      };
      bool dominated = false;
      for (std::size_t j = candidates_.begin[s]; j < candidates_.begin[s + 1] && !dominated; ++j)
        dominated = dominates(j);
      if (!dominated) kept.push_back(static_cast<std::uint32_t>(i));
    }
    return kept;
  }

  /// Adds a row for each type of which there may be too little; and, of `steps`, for each of which
  /// more may be used than is free.
  void add_type_rows(Problem& problem, const std::vector<std::size_t>& servers,
                     const std::vector<Step>& steps = {}) const {
    std::vector<double> most(limits_.size(), 0);
    for (const std::size_t s : servers) {
      std::map<std::uint32_t, std::int64_t> most_of;
      for (const std::uint32_t i : options_[s])
        if (const Candidate& c = candidates_.all[i]; c.accelerator != Candidate::kNothing) {
          auto& m = most_of[candidates_.type_of[c.accelerator]];
          m = std::max(m, c.units());
        }
      for (const auto& [type, units] : most_of) most[type] += static_cast<double>(units);
    }
    for (std::size_t type = 0; type < limits_.size(); ++type) {
      const auto limit = static_cast<double>(limits_[type]);
      const bool has_step = type < steps.size() && steps[type].price > 0 &&
                            most[type] > static_cast<double>(steps[type].free);
      const bool has_row = most[type] > limit || has_step;
      problem.row_of_type.push_back(
          has_row ? static_cast<std::int32_t>(problem.knapsack.add_row(std::min(limit, most[type])))
                  : -1);
    }
  }

  /// `served_row`: counts that the server is served; -1: nothing does.
  void add_option(Problem& problem, std::uint32_t place, double cost,
                  std::int32_t served_row = -1) const {
    const Candidate& c = candidates_.all[place];
    std::vector<Use> uses;
    if (c.accelerator != Candidate::kNothing)
      if (const auto row = problem.row_of_type[candidates_.type_of[c.accelerator]]; row >= 0)
        uses.push_back({static_cast<std::uint32_t>(row), static_cast<double>(c.units())});
    if (served_row >= 0) uses.push_back({static_cast<std::uint32_t>(served_row), 1});
    if (place == chosen_[problem.servers.back()])
      problem.start.back() = static_cast<std::uint32_t>(problem.knapsack.options.size());
    problem.knapsack.add(cost, uses, place);
  }

  /// A server that can be served from a type that is not scarce always is, and needs no such
  /// option.
  void add_unserved(Problem& problem, std::int32_t row, double cost) const {
    if (!may_stay_unserved_[problem.servers.back()]) return;
    const auto& knapsack = problem.knapsack;
    for (std::size_t o = knapsack.begin.back(); o < knapsack.options.size(); ++o) {
      if (!knapsack.uses_of(knapsack.options[o]).empty()) continue;
      if (problem.start.back() == UINT32_MAX) problem.start.back() = static_cast<std::uint32_t>(o);
      return;
    }
    if (chosen_[problem.servers.back()] == kUnserved)
      problem.start.back() = static_cast<std::uint32_t>(problem.knapsack.options.size());
    std::vector<Use> uses;
    if (row >= 0) uses.push_back({static_cast<std::uint32_t>(row), 1});
    problem.knapsack.add(cost, uses, kUnserved);
  }

  void add_counted_unserved(Problem& problem, std::size_t s) const {
    const auto row = problem.row_of_priority.find(candidates_.priority[s]);
    if (row != problem.row_of_priority.end()) add_unserved(problem, row->second, 0);
  }

  std::int32_t served_row(const Problem& problem, std::size_t s) const {
    const auto row = problem.served_row_of_priority.find(candidates_.priority[s]);
    const bool counts = row != problem.served_row_of_priority.end() && may_wait(problem, s);
    return counts ? row->second : -1;
  }

  static void begin_group(Problem& problem, std::size_t server) {
    problem.servers.push_back(server);
    problem.start.push_back(UINT32_MAX);
  }

  /// Whether the server, of a type that is scarce, may be left unserved in the problem.
  bool may_wait(const Problem& problem, std::size_t s) const {
    return may_stay_unserved_[s] && std::ranges::all_of(options_[s], [&](std::uint32_t i) {
             const Candidate& c = candidates_.all[i];
             return c.accelerator != Candidate::kNothing &&
                    problem.row_of_type[candidates_.type_of[c.accelerator]] >= 0;
           });
  }

  /// Of each priority no more may be unserved than have been found to, and no fewer can be than
  /// is proven. The second follows from the first for whole servers only, and is what the
  /// relaxation does not know.
  void add_count_rows(Problem& problem, int below, std::size_t servers) const {
    std::map<int, int> waiting;  // how many might
    for (std::size_t s = 0; s < options_.size(); ++s)
      if (!is_infeasible(s) && may_wait(problem, s)) ++waiting[candidates_.priority[s]];
    for (const auto& [priority, unserved] : unserved_) {
      if (priority >= below || unserved == 0) continue;
      if (const int proven = proven_.at(priority); proven > 0 && is_many_groups(servers))
        problem.served_row_of_priority[priority] =
            static_cast<std::int32_t>(problem.knapsack.add_row(waiting[priority] - proven));
      const auto all = servers_.find(priority);
      problem.row_of_priority[priority] = -1;
      if (all == servers_.end() || unserved >= all->second) continue;
      problem.row_of_priority[priority] =
          static_cast<std::int32_t>(problem.knapsack.add_row(unserved));
    }
  }

  /// Roughly what the plan will cost: its servers each on the cheapest candidate.
  double least_cost() const {
    double sum = 0;
    for (std::size_t s = 0; s < chosen_.size(); ++s) {
      if (chosen_[s] == kUnserved) continue;
      sum += std::ranges::min(candidates_.of(s), {}, &Candidate::cost).cost;
    }
    return sum;
  }

  /// The fewest unserved of the priorities from `first` to `last`, each counting as much, while
  /// those above are left with no more than they have been.
  Problem stage(int first, int last) const {
    Problem problem;
    problem.knapsack.whole_costs = true;
    std::vector<std::size_t> servers;
    for (std::size_t s = 0; s < options_.size(); ++s)
      if (candidates_.priority[s] <= last && !is_infeasible(s)) servers.push_back(s);
    add_type_rows(problem, servers);
    add_count_rows(problem, first, servers.size());
    for (const std::size_t s : servers) {
      begin_group(problem, s);
      for (const std::uint32_t i : options_[s])
        if (is_least_of_type(s, i)) add_option(problem, i, 0, served_row(problem, s));
      if (candidates_.priority[s] >= first)
        add_unserved(problem, -1, 1);
      else
        add_counted_unserved(problem, s);
      problem.knapsack.end_group();
    }
    return problem;
  }

  /// Where only the count matters, a type's least units do; what stands chosen stays.
  bool is_least_of_type(std::size_t s, std::uint32_t i) const {
    const Candidate& c = candidates_.all[i];
    if (i == chosen_[s] || c.accelerator == Candidate::kNothing) return true;
    return std::ranges::none_of(options_[s], [&](std::uint32_t j) {
      const Candidate& d = candidates_.all[j];
      return d.accelerator != Candidate::kNothing &&
             candidates_.type_of[d.accelerator] == candidates_.type_of[c.accelerator] &&
             (d.units() < c.units() || (d.units() == c.units() && j < i));
    });
  }

  Problem value_stage() const {
    Problem problem;
    std::vector<std::size_t> servers;
    for (std::size_t s = 0; s < options_.size(); ++s)
      if (!is_infeasible(s)) servers.push_back(s);
    add_type_rows(problem, servers, steps_);
    add_count_rows(problem, INT_MAX, servers.size());
    for (const std::size_t s : servers) {
      begin_group(problem, s);
      for (const std::uint32_t i : options_[s])
        add_option(problem, i, candidates_.all[i].value, served_row(problem, s));
      add_counted_unserved(problem, s);
      problem.knapsack.end_group();
    }
    for (std::size_t type = 0; type < steps_.size(); ++type) add_step(problem, type);
    return problem;
  }

  /// Further units are paid for in packs of 1, 2, 4, … and the rest, whose sums are all numbers: a
  /// group each, which either costs its price or takes its units out of the row. Those that the
  /// start leaves over are taken out.
  void add_step(Problem& problem, std::size_t type) const {
    if (problem.row_of_type[type] < 0 || steps_[type].price <= 0) return;
    Knapsack& knapsack = problem.knapsack;
    const auto row = static_cast<std::uint32_t>(problem.row_of_type[type]);
    double left = knapsack.limits[row];
    std::vector<double> packs;
    for (double rest = left - static_cast<double>(steps_[type].free), pack = 1; rest > 0; pack *= 2)
      rest -= packs.emplace_back(std::min(pack, rest));
    for (const std::uint32_t o : problem.start)
      for (const Use& use : knapsack.uses_of(knapsack.options[o]))
        if (use.row == row) left -= use.amount;
    for (std::size_t p = packs.size(); p-- > 0;) {
      const bool is_over = packs[p] <= left;
      if (is_over) left -= packs[p];
      problem.start.push_back(
          static_cast<std::uint32_t>(knapsack.options.size() + (is_over ? 1 : 0)));
      knapsack.add(steps_[type].price * packs[p], {});
      knapsack.add(0, std::array{Use{row, packs[p]}});
      knapsack.end_group();
    }
  }

  /// Whether all can be served, all priorities at once; then they are.
  bool serve_all() {
    if (unserved_.empty()) return true;
    const Problem problem = stage(unserved_.begin()->first, unserved_.rbegin()->first);
    const Answer answer = run(problem, budget_.iterations / kLeastShare, 0);
    if (answer.cost > 0) return false;
    keep(problem, answer);
    return true;
  }

  Answer run(const Problem& problem, std::int64_t most_options, double useful = HUGE_VAL) {
    for (const std::uint32_t option : problem.start) BERTH_ASSERT(option != UINT32_MAX);
    Budget part = budget_;
    part.iterations = most_options;
    Answer answer = fleet::solve(problem.knapsack, problem.start, part, useful);
    budget_.iterations -= most_options - part.iterations;
    budget_.stopped = part.stopped;
    return answer;
  }

  /// Drops the options that, by the prices, cannot be part of a plan with so few unserved servers.
  void eliminate_options(const Problem& problem, const Answer& answer, int priority) {
    const auto price = [&](std::int32_t row) {
      return row < 0 ? 0 : answer.prices[static_cast<std::size_t>(row)];
    };
    for (std::size_t s = 0; s < options_.size(); ++s) {
      const auto priced = [&](std::uint32_t i) {
        const Candidate& c = candidates_.all[i];
        if (c.accelerator == Candidate::kNothing) return 0.0;
        return price(problem.row_of_type[candidates_.type_of[c.accelerator]]) *
               static_cast<double>(c.units());
      };
      const auto row = problem.row_of_priority.find(candidates_.priority[s]);
      double waiting = HUGE_VAL;
      if (candidates_.priority[s] > priority)
        waiting = 0;
      else if (candidates_.priority[s] == priority)
        waiting = 1;
      else if (row != problem.row_of_priority.end())
        waiting = price(row->second);
      if (!may_stay_unserved_[s]) waiting = HUGE_VAL;
      double least = waiting;
      for (const std::uint32_t i : options_[s]) least = std::min(least, priced(i));
      const auto is_out = [&](double cost) {
        return answer.relaxed + (cost - least) > answer.cost + kIntegralityTolerance;
      };
      std::erase_if(options_[s], [&](std::uint32_t i) { return is_out(priced(i)); });
      if (is_out(waiting)) may_stay_unserved_[s] = false;
    }
  }

  void keep(const Problem& problem, const Answer& answer) {
    for (std::size_t g = 0; g < problem.servers.size(); ++g)
      chosen_[problem.servers[g]] = problem.knapsack.options[answer.chosen[g]].tag;
  }

  bool is_infeasible(std::size_t s) const { return is_infeasible_[s]; }

  const Candidates& candidates_;
  const std::vector<std::int64_t>& limits_;
  const std::vector<Step>& steps_;
  Budget budget_;
  std::vector<std::vector<std::uint32_t>> options_;  // by server
  std::vector<bool> is_infeasible_,
      may_stay_unserved_;  // by server: it has no candidate; it may stay unserved
  std::map<int, int> servers_, infeasible_, unserved_,
      proven_;                         // by priority: with options, without, as found, at least
  std::vector<std::uint32_t> chosen_;  // by server: place in Candidates::all
};

}  // namespace

Optimum solve_optimal(const Candidates& candidates, const std::vector<std::int64_t>& limits,
                      const Execution& execution, const std::vector<Step>& steps) {
  return Stages(candidates, limits, execution, steps).solve();
}

}  // namespace berth::fleet
