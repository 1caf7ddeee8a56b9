// The solver closes the gap between bound and best choice from both sides. The cutoff of a search
// begins a little above the relaxation's bound and moves away from it: a choice found below the
// cutoff is nearly optimal, and if there is none the cutoff is a bound. A near cutoff leaves few
// options, as an option whose reduced cost exceeds the distance to the cutoff cannot be part of a
// choice below it. Searches in the neighbourhood of the best choice so far run beside that.
#include "berth/fleet/solver/knapsack.h"

#include <algorithm>
#include <cmath>

#include "berth/base/result.h"
#include "berth/base/rng.h"
#include "berth/fleet/solver/branch_and_bound.h"
#include "berth/fleet/solver/relaxation.h"

namespace berth::fleet {
namespace {

constexpr std::size_t kMostExact = 200;  // groups
constexpr double kFirstReach =
    1e-4;  // distance of the first cutoff from the bound, as a part of the cost

/// Solves one problem; holds its relaxation, the best bound and the best choice so far.
class KnapsackSolver {
 public:
  KnapsackSolver(const Knapsack& knapsack, const Chosen& start, Budget& budget, double enough,
                 bool is_strengthened)
      : knapsack_(knapsack),
        budget_(budget),
        root_(knapsack),
        enough_(enough),
        is_strengthened_(is_strengthened) {
    root_.solve(HUGE_VAL, budget);
    answer_.relaxed = root_.bound(budget);
    answer_.bound = whole(knapsack, answer_.relaxed);
    answer_.prices = root_.prices();
    answer_.prices.resize(knapsack.limits.size());
    answer_.chosen = start;
    answer_.cost = cost_of(knapsack, start);
    all_.open = knapsack;
    for (std::uint32_t o = 0; o < knapsack.options.size(); ++o) all_.open.options[o].tag = o;
  }

  Answer answer(double useful) {
    if (answer_.bound <= useful && !is_done()) {
      if (Chosen start = root_.rounded(); repair(knapsack_, answer_.prices, start, budget_))
        accept(std::move(start));
      search_neighbourhood();
      if (is_strengthened_) {
        close_gap(useful);
      } else {
        // Most are proven sooner in the smaller problem without cuts.
        const std::int64_t spared = budget_.iterations / 30 * (30 - without_cuts());
        budget_.iterations -= spared;
        close_gap(useful);
        budget_.iterations += spared;
        if (!is_done() && answer_.bound <= useful) raise_bound_by_cuts();
        if (!is_done() && answer_.bound <= useful) solve_strengthened(useful);
        close_gap(useful);
      }
      if (!is_done()) {
        Chosen better = answer_.chosen;
        improve(knapsack_, better, budget_);
        accept(std::move(better));
      }
    }
    answer_.bound = std::min(answer_.bound, answer_.cost);
    return std::move(answer_);
  }

 private:
  static constexpr std::int64_t kQuickPasses = 1500;  // passes over the options in a quick search
  static constexpr std::int64_t kFirstPasses = 8000;  // and in the first thorough one
  static constexpr std::int64_t kMostOptions =
      2500;  // options that count in the budget of a search
  static constexpr double kLeastFree = 0.05, kMostFree = 0.2;  // of the groups, in a neighbourhood

  /// How many parts in 30 of the budget the search without cuts gets.
  std::int64_t without_cuts() const {
    if (!knapsack_.whole_costs) return 10;
    return is_many_groups(knapsack_.groups()) ? 3 : 20;
  }

  double gap() const { return answer_.cost - answer_.bound; }
  bool is_done() const { return gap() <= std::max(enough_, tolerance_of(answer_.cost)); }

  void accept(Chosen chosen) {
    const double cost = cost_of(knapsack_, chosen);
    if (cost >= answer_.cost) return;
    answer_.chosen = std::move(chosen);
    answer_.cost = cost;
  }

  /// Of a large problem whose costs are whole numbers. Cuts that end at some number in the problem
  /// without what is dropped (solve_strengthened) may go beyond it here, and the other way round.
  void raise_bound_by_cuts() {
    if (!knapsack_.whole_costs || !is_many_groups(knapsack_.groups())) return;
    const Knapsack strong = strengthened(knapsack_, budget_);
    Relaxation lp(strong);
    lp.solve(HUGE_VAL, budget_);
    answer_.bound = std::max(answer_.bound, whole(knapsack_, lp.bound(budget_)));
  }

  /// Solves what is left of the problem when all is dropped that cannot be part of a better choice,
  /// with cuts.
  void solve_strengthened(double useful) {
    SearchState state = state_below(answer_.cost, Branching::by_weight);
    state.less = tolerance_of(answer_.cost);
    std::vector<bool> stays(knapsack_.options.size());
    for (std::uint32_t o = 0; o < stays.size(); ++o) stays[o] = may_be_part(state, o);
    for (const std::uint32_t o : answer_.chosen) stays[o] = true;
    Node rest;
    std::vector<std::uint32_t> kept;
    BERTH_ASSERT(narrow(all_, stays, rest, kept));
    Chosen start;
    for (std::uint32_t i = 0; i < kept.size(); ++i)
      if (std::ranges::binary_search(answer_.chosen, kept[i])) start.push_back(i);
    const Knapsack strong = strengthened(rest.open, budget_);
    KnapsackSolver solver(strong, start, budget_, enough_, true);
    if (!knapsack_.whole_costs && solver.answer_.bound + rest.cost <= answer_.bound) return;
    const Answer answer = solver.answer(useful - rest.cost);
    Chosen chosen = rest.taken;
    for (const std::uint32_t o : answer.chosen) chosen.push_back(strong.options[o].tag);
    std::ranges::sort(chosen);
    answer_.bound = std::max(answer_.bound, std::min(answer.bound + rest.cost, state.cutoff));
    accept(std::move(chosen));
  }

  /// Searches below cutoffs further and further from the bound until a choice is found, then
  /// between the two.
  void close_gap(double useful) {
    double reach =
        knapsack_.whole_costs ? 1 : std::max(enough_, kFirstReach * std::abs(answer_.cost));
    std::int64_t passes = kFirstPasses;
    double part = 1;
    while (!is_done() && answer_.bound <= useful && !budget_.spent()) {
      double step = part * gap();
      const bool is_far = reach < step;
      if (is_far) step = reach;
      if (knapsack_.whole_costs) step = std::max(1.0, std::floor(step));
      if (step > gap() - enough_) step = gap();
      reach *= 2;
      const double before = gap(), cost = answer_.cost;
      const double used = search_below(answer_.bound + step, is_far ? 0 : passes);
      if (!is_far || answer_.cost < cost) search_neighbourhood();
      if (is_far) continue;
      const bool was_easy = gap() < before && 4 * used < static_cast<double>(passes);
      if (!was_easy && (part < 1 || knapsack_.whole_costs)) passes *= 4;
      part = was_easy || part == 1 ? 0.5 : 1;
    }
  }

  /// Searches for choices below `cutoff` with one branching rule after another. Returns the passes
  /// that the successful one took.
  double search_below(double cutoff, std::int64_t passes) {
    const double before = gap();
    double used = 0;
    if (passes <= kFirstPasses) used = search_below(cutoff, branching_, kQuickPasses);
    if (passes <= kFirstPasses && gap() == before)
      used = search_below(cutoff, Branching::diving, kQuickPasses);
    for (int i = 0; i < 2 && gap() == before && passes > kQuickPasses; ++i) {
      used = search_below(cutoff, branching_, passes);
      if (gap() == before)
        branching_ = branching_ == Branching::by_weight ? Branching::strong : Branching::by_weight;
    }
    return used;
  }

  double search_below(double cutoff, Branching branching, std::int64_t passes) {
    SearchState state = state_below(cutoff, branching);
    std::vector<bool> stays(knapsack_.options.size());
    for (std::uint32_t o = 0; o < stays.size(); ++o) stays[o] = may_be_part(state, o);
    const double used = search_among(state, stays, passes);
    const bool is_exact = knapsack_.whole_costs || enough_ == 0;
    const double closed = is_exact ? state.cutoff : state.cutoff - state.less;
    if (branching != Branching::diving)
      answer_.bound = std::max(answer_.bound, std::min(state.unfinished, closed));
    return used;
  }

  /// Large neighbourhood search: fixes the groups where the best choice agrees with the relaxation,
  /// but for some random ones, and searches the rest for much better choices. The neighbourhood
  /// grows while that finds none.
  void search_neighbourhood() {
    for (double part = kLeastFree; part <= kMostFree && !is_done() && !budget_.spent();) {
      const double nearer = answer_.cost - gap_part_ * gap();
      SearchState state =
          state_below(knapsack_.whole_costs ? std::ceil(nearer) : nearer, Branching::by_weight);
      std::vector<bool> stays(knapsack_.options.size()), is_free(knapsack_.groups());
      for (const Relaxation::Fraction& p : root_.fractions()) is_free[p.group] = true;
      const Chosen relaxed = root_.rounded();
      std::size_t apart = 0;
      for (std::size_t g = 0; g < knapsack_.groups(); ++g)
        apart += relaxed[g] != answer_.chosen[g] ? 1 : 0;
      if (4 * apart > knapsack_.groups()) return;
      for (std::size_t g = 0; g < knapsack_.groups(); ++g) {
        stays[answer_.chosen[g]] = true;
        const bool is_chosen = rng_.uniform() < part;
        if (!is_free[g] && !is_chosen && relaxed[g] == answer_.chosen[g]) continue;
        for (std::size_t o = knapsack_.begin[g]; o < knapsack_.begin[g + 1]; ++o)
          stays[o] = may_be_part(state, static_cast<std::uint32_t>(o));
      }
      const double before = answer_.cost;
      search_among(state, stays, kQuickPasses);
      if (answer_.cost == before) part *= 2;
      if (answer_.cost == before && part > kMostFree) gap_part_ /= 4;
    }
  }

  SearchState state_below(double cutoff, Branching branching) {
    return {.budget = budget_,
            .branching = branching,
            .cutoff = cutoff,
            .less = std::max(enough_ / 2, tolerance_of(cutoff))};
  }

  bool may_be_part(const SearchState& state, std::uint32_t option) const {
    return !state.is_pruned(knapsack_, answer_.relaxed + root_.reduced_cost(option));
  }

  /// Searches among the options that stay. Returns the passes that it took.
  double search_among(SearchState& state, const std::vector<bool>& stays, std::int64_t passes) {
    Node node;
    std::vector<std::uint32_t> kept;
    if (!narrow(all_, stays, node, kept)) return 0;
    const auto options = static_cast<std::int64_t>(std::max<std::size_t>(1, kept.size()));
    const std::int64_t before = budget_.iterations;
    const std::int64_t iterations = std::max(passes * std::min(options, kMostOptions),
                                             std::min(passes, kQuickPasses) * options);
    const std::int64_t spared = std::max<std::int64_t>(0, before - iterations);
    budget_.iterations -= spared;
    search(std::move(node), state);
    budget_.iterations += spared;
    if (!state.found.empty()) {
      BERTH_ASSERT(state.found.size() == knapsack_.groups());
      std::ranges::sort(state.found);  // options are in the order of groups
      accept(std::move(state.found));
    }
    return static_cast<double>(before - budget_.iterations) / static_cast<double>(options);
  }

  const Knapsack& knapsack_;
  Budget& budget_;
  Relaxation root_;
  const double enough_;
  const bool is_strengthened_;
  Node all_;
  Answer answer_;
  Branching branching_ = Branching::by_weight;
  Rng rng_{1};
  double gap_part_ = 0.25;  // the part of the gap that a neighbourhood search has to close
};

}  // namespace

bool Budget::spent() {
  if (!stopped && stop != nullptr && *stop && (*stop)()) stopped = true;
  return stopped || iterations <= 0;
}

double cost_of(const Knapsack& knapsack, const Chosen& chosen) {
  double cost = 0;
  for (const std::uint32_t o : chosen) cost += knapsack.options[o].cost;
  return cost;
}

std::vector<double> left_of(const Knapsack& knapsack, const Chosen& chosen) {
  std::vector<double> left = knapsack.limits;
  for (const std::uint32_t o : chosen)
    for (const Use& use : knapsack.uses_of(knapsack.options[o])) left[use.row] -= use.amount;
  return left;
}

Answer solve(const Knapsack& knapsack, const Chosen& start, Budget& budget, double useful) {
  if (knapsack.groups() == 0) return {};
  const double enough = knapsack.groups() > kMostExact ? knapsack.close_enough : 0;
  return KnapsackSolver(knapsack, start, budget, enough, false).answer(useful);
}

}  // namespace berth::fleet
