#include "berth/fleet/solver/branch_and_bound.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>

#include "berth/fleet/solver/relaxation.h"

namespace berth::fleet {
namespace {

constexpr double kWhole = 1e-6;  // a bound this little above a whole number is rounded down
constexpr std::size_t kWorthShrinking = 64;  // options
constexpr std::size_t kDivingOptions = 4;    // options that a diving search takes at once

/// Rounds each limit down to a multiple of the greatest common divisor of the amounts in its row.
void cut_limits(Knapsack& knapsack) {
  std::vector<std::int64_t> divisors(knapsack.limits.size(), 0);
  for (const Use& use : knapsack.uses)
    divisors[use.row] = std::gcd(divisors[use.row], std::llround(use.amount));
  for (std::size_t r = 0; r < divisors.size(); ++r) {
    if (divisors[r] <= 1 || knapsack.kinds[r] == RowKind::any) continue;
    const auto divisor = static_cast<double>(divisors[r]);
    knapsack.limits[r] =
        divisor * std::floor((knapsack.limits[r] + kFeasibilityTolerance) / divisor);
  }
}

class Search {
 public:
  Search(Node node, SearchState& state) : node_(std::move(node)), state_(state), lp_(node_.open) {}
  Search(Node node, SearchState& state, const Relaxation::Basis& basis)
      : Search(std::move(node), state) {
    lp_.restore(basis);
  }
  void forbid(std::uint32_t option) {
    lp_.forbid(option);
    forbidden_.push_back(option);
  }

  void descend() {
    const std::size_t before = forbidden_.size();
    while (!is_closed()) {
      std::vector<Relaxation::Fraction> fractions = lp_.fractions();
      if (fractions.empty()) {
        accept(lp_.rounded());
        // The relaxation's costs are a little off, so that another choice may be less yet.
        if (!state_.is_pruned(node_.open, base_)) leave_open();
        break;
      }
      if (worth_shrinking()) {
        shrink();
        break;
      }
      const Relaxation::Basis basis = lp_.basis();
      std::vector<Relaxation::Fraction> chosen;
      if (state_.branching != Branching::strong)
        chosen = heaviest(std::move(fractions));
      else if (const auto part = strong_branching(fractions, basis))
        chosen = {*part};
      if (chosen.empty()) continue;
      take_all(chosen, 0, basis);
      forbid(chosen[0].option);
    }
    --state_.dead_ends_left;
    allow_since(before);
  }

 private:
  /// Whether the node is pruned or solved. If not, the relaxation is at its optimum, and only
  /// options are allowed that may be part of a choice below the cutoff.
  bool is_closed() {
    if (state_.branching == Branching::diving && state_.dead_ends_left < 0) return true;
    auto outcome = lp_.solve(state_.cutoff - node_.cost + 1e-6 * std::abs(state_.cutoff) + 1e-3,
                             state_.budget);
    if (outcome == Relaxation::Outcome::infeasible) return true;
    base_ = node_.cost + lp_.bound(state_.budget);
    if (state_.is_pruned(node_.open, base_)) return true;
    if (outcome == Relaxation::Outcome::enough) {
      outcome = lp_.solve(HUGE_VAL, state_.budget);
      if (outcome == Relaxation::Outcome::infeasible) return true;
      base_ = node_.cost + lp_.bound(state_.budget);
    }
    if (outcome != Relaxation::Outcome::optimal) {
      leave_open();
      return true;
    }
    for (std::uint32_t o = 0; o < node_.open.options.size(); ++o)
      if (lp_.allowed(o) && state_.is_pruned(node_.open, base_ + lp_.reduced_cost(o))) forbid(o);
    return false;
  }

  void take(const Relaxation::Fraction& part) {
    for (std::size_t o = node_.open.begin[part.group]; o < node_.open.begin[part.group + 1]; ++o)
      if (o != part.option && lp_.allowed(static_cast<std::uint32_t>(o)))
        forbid(static_cast<std::uint32_t>(o));
  }

  /// By how much the bound rises with what was forbidden since the basis was saved; restores it.
  double bound_increase_since(std::size_t count, const Relaxation::Basis& basis) {
    const auto outcome = lp_.solve(HUGE_VAL, state_.budget);
    double dearer = HUGE_VAL;
    if (outcome != Relaxation::Outcome::infeasible)
      dearer = std::max(0.0, node_.cost + lp_.bound(state_.budget) - base_);
    allow_since(count);
    lp_.restore(basis);
    return dearer;
  }

  /// Strong branching: the option for which both branches raise the bound the most. nullopt: an
  /// option was taken or forbidden for good, as its other branch is pruned.
  std::optional<Relaxation::Fraction> strong_branching(
      const std::vector<Relaxation::Fraction>& fractions, const Relaxation::Basis& basis) {
    std::optional<Relaxation::Fraction> best;
    double most = -1;
    const std::size_t here = forbidden_.size();
    for (const Relaxation::Fraction& part : fractions) {
      if (state_.budget.spent()) break;
      take(part);
      const double taken = bound_increase_since(here, basis);
      if (state_.is_pruned(node_.open, base_ + taken)) {
        forbid(part.option);
        return std::nullopt;
      }
      forbid(part.option);
      const double forbidden = bound_increase_since(here, basis);
      if (state_.is_pruned(node_.open, base_ + forbidden)) {
        take(part);
        return std::nullopt;
      }
      const double score = std::max(taken, 1e-6) * std::max(forbidden, 1e-6);
      if (score > most) most = score, best = part;
    }
    return best ? best : fractions.front();
  }

  void leave_open() { state_.unfinished = std::min(state_.unfinished, whole(node_.open, base_)); }

  void accept(const Chosen& chosen) {
    const double cost = node_.cost + cost_of(node_.open, chosen);
    for (const double left : left_of(node_.open, chosen))
      if (left < -kFeasibilityTolerance) return leave_open();
    if (state_.is_pruned(node_.open, cost)) return;
    state_.cutoff = cost;
    state_.found = node_.taken;
    for (const std::uint32_t o : chosen) state_.found.push_back(node_.open.options[o].tag);
  }

  /// Searches with all options from `first` on taken; then, of those behind it, without the last, …
  void take_all(const std::vector<Relaxation::Fraction>& fractions, std::size_t first,
                const Relaxation::Basis& basis) {
    const std::size_t here = forbidden_.size();
    take(fractions[first]);
    if (first + 1 == fractions.size()) {
      descend();
    } else {
      take_all(fractions, first + 1, basis);
      forbid(fractions[first + 1].option);
      descend();
    }
    allow_since(here);
    lp_.restore(basis);
  }

  /// Options that use much come first: that leaves small gaps to fill.
  std::vector<Relaxation::Fraction> heaviest(std::vector<Relaxation::Fraction> fractions) const {
    const auto weight = [&](const Relaxation::Fraction& part) {
      const Option& o = node_.open.options[part.option];
      return std::tuple(-node_.open.weighted(o, lp_.prices()), -part.part, part.option);
    };
    std::ranges::sort(fractions, {}, weight);
    std::vector<Relaxation::Fraction> chosen;
    for (const Relaxation::Fraction& part : fractions) {
      if (chosen.size() >= (state_.branching == Branching::diving ? kDivingOptions : 1)) break;
      if (std::ranges::find(chosen, part.group, &Relaxation::Fraction::group) == chosen.end())
        chosen.push_back(part);
    }
    return chosen;
  }

  bool worth_shrinking() const {
    const std::size_t options = node_.open.options.size();
    return options > kWorthShrinking && 3 * forbidden_.size() > options;
  }

  /// Continues in the smaller problem of the allowed options, from the present basis.
  void shrink() {
    const Relaxation::Basis basis = lp_.basis();
    std::vector<bool> stays(node_.open.options.size());
    for (std::uint32_t o = 0; o < stays.size(); ++o) stays[o] = lp_.allowed(o);
    for (const std::uint32_t o : basis.group_keys) stays[o] = true;
    for (const std::uint32_t o : basis.columns)
      if (!Relaxation::is_row(o)) stays[o] = true;
    Node node;
    std::vector<std::uint32_t> kept, new_index(stays.size(), UINT32_MAX);
    if (!narrow(node_, stays, node, kept)) return;
    for (std::uint32_t i = 0; i < kept.size(); ++i) new_index[kept[i]] = i;
    Relaxation::Basis restored;
    for (const std::uint32_t o : basis.group_keys)
      if (new_index[o] != UINT32_MAX) restored.group_keys.push_back(new_index[o]);
    for (const std::uint32_t o : basis.columns)
      restored.columns.push_back(Relaxation::is_row(o) ? o : new_index[o]);
    Search search(std::move(node), state_, restored);
    for (std::uint32_t i = 0; i < kept.size(); ++i)
      if (!lp_.allowed(kept[i])) search.forbid(i);
    search.descend();
  }

  void allow_since(std::size_t count) {
    for (; forbidden_.size() > count; forbidden_.pop_back()) lp_.allow(forbidden_.back());
  }

  const Node node_;
  SearchState& state_;
  Relaxation lp_;
  double base_ = 0;  // the bound of the node, to which reduced costs add
  std::vector<std::uint32_t> forbidden_;
};

}  // namespace

bool narrow(const Node& from, const std::vector<bool>& stays, Node& to,
            std::vector<std::uint32_t>& kept) {
  to = {};
  to.open.limits = from.open.limits;
  to.open.kinds = from.open.kinds;
  to.open.whole_costs = from.open.whole_costs;
  to.taken = from.taken;
  to.cost = from.cost;
  for (std::size_t g = 0; g < from.open.groups(); ++g) {
    const std::size_t before = kept.size();
    for (std::size_t o = from.open.begin[g]; o < from.open.begin[g + 1]; ++o)
      if (stays[o]) kept.push_back(static_cast<std::uint32_t>(o));
    if (kept.size() == before) return false;
    if (kept.size() == before + 1) {
      const Option& only = from.open.options[kept.back()];
      kept.pop_back();
      to.taken.push_back(only.tag);
      to.cost += only.cost;
      for (const Use& use : from.open.uses_of(only)) to.open.limits[use.row] -= use.amount;
      continue;
    }
    for (std::size_t i = before; i < kept.size(); ++i) {
      const Option& option = from.open.options[kept[i]];
      to.open.add(option.cost, from.open.uses_of(option), option.tag);
    }
    to.open.end_group();
  }
  if (std::ranges::any_of(to.open.limits,
                          [](double limit) { return limit < -kFeasibilityTolerance; }))
    return false;
  cut_limits(to.open);
  return true;
}

double whole(const Knapsack& knapsack, double bound) {
  return knapsack.whole_costs ? std::ceil(bound - kWhole) : bound;
}

bool SearchState::is_pruned(const Knapsack& knapsack, double bound) const {
  return whole(knapsack, bound) >= cutoff - (knapsack.whole_costs ? kWhole : less);
}

void search(Node node, SearchState& state) {
  Search(std::move(node), state).descend();
}

}  // namespace berth::fleet
