// Gomory's mixed-integer cuts (1960): what follows for whole numbers from the rows of the
// relaxation's basis, and does not hold of its fractions. Where servers of a higher priority leave
// almost no room, the relaxation alone says little, and some ten cuts close most of its distance
// from the optimum.
#include <algorithm>
#include <cmath>

#include "berth/fleet/solver/relaxation.h"

namespace berth::fleet {
namespace {

constexpr double kLeastFraction = 0.02;  // that a cut is made of
constexpr double kCutTolerance = 1e-6;  // by which a cut, violated by 1, is weaker than it might be
constexpr int kCutRounds = 15;
constexpr std::int64_t kStepsOfARound = 400;  // before it is given up
constexpr int kMostIdleRounds = 3;            // which raise the bound by less than
constexpr double kWorthwhileRise = 0.01;      // of what all before did

double fraction_of(double value) {
  return value - std::floor(value);
}

/// The least factor of a whole variable whose coefficient has the fraction, in a cut that says
/// >= 1 where the basic variable has the fraction `basic`.
double whole_factor(double coefficient, double basic) {
  const double fraction = fraction_of(coefficient);
  return fraction <= basic ? fraction / basic : (1 - fraction) / (1 - basic);
}

/// That of a variable that need not be whole.
double any_factor(double coefficient, double basic) {
  return coefficient > 0 ? coefficient / basic : -coefficient / (1 - basic);
}

Knapsack with_cuts(const Knapsack& from, const std::vector<Cut>& cuts) {
  Knapsack to;
  to.whole_costs = from.whole_costs;
  to.limits = from.limits;
  to.kinds = from.kinds;
  for (const Cut& cut : cuts) to.add_row(cut.limit, RowKind::any);
  std::vector<Use> uses;
  for (std::size_t g = 0; g < from.groups(); ++g) {
    for (std::size_t o = from.begin[g]; o < from.begin[g + 1]; ++o) {
      const auto own = from.uses_of(from.options[o]);
      uses.assign(own.begin(), own.end());
      for (std::size_t c = 0; c < cuts.size(); ++c)
        if (cuts[c].amounts[o] > 0)
          uses.push_back({static_cast<std::uint32_t>(from.limits.size() + c), cuts[c].amounts[o]});
      to.add(from.options[o].cost, uses, from.options[o].tag);
    }
    to.end_group();
  }
  return to;
}

/// What a round may take: so many steps of the simplex method (Relaxation::step()).
std::int64_t iterations_of_round(const Knapsack& knapsack) {
  const std::size_t rows = knapsack.limits.size();
  return kStepsOfARound * static_cast<std::int64_t>(knapsack.options.size() + 6 * rows * rows);
}

/// Removes the cuts whose slack is in the basis, which bind nothing, and returns the basis of the
/// rows that stay.
Relaxation::Basis without_idle_cuts(Relaxation::Basis basis, std::size_t own_rows,
                                    std::vector<Cut>& cuts) {
  std::vector<bool> is_idle(own_rows + cuts.size());
  for (const std::uint32_t column : basis.columns)
    if (Relaxation::is_row(column)) is_idle[Relaxation::row_of(column)] = true;
  std::vector<std::uint32_t> new_row(is_idle.size());
  std::uint32_t rows = 0;
  for (std::size_t row = 0; row < is_idle.size(); ++row) {
    is_idle[row] = is_idle[row] && row >= own_rows;
    new_row[row] = rows;
    if (!is_idle[row]) ++rows;
  }
  std::vector<std::uint32_t> kept;
  for (const std::uint32_t column : basis.columns) {
    if (!Relaxation::is_row(column))
      kept.push_back(column);
    else if (const auto row = Relaxation::row_of(column); !is_idle[row])
      kept.push_back(Relaxation::slack_of(new_row[row]));
  }
  basis.columns = std::move(kept);
  std::size_t row = own_rows;
  std::erase_if(cuts, [&](const Cut&) { return is_idle[row++]; });
  return basis;
}

}  // namespace

std::optional<Cut> Relaxation::cut_of(std::size_t position) const {
  // The row of the tableau: the basic variable + sum of coefficients · nonbasic ones = value.
  const double* row = inverse_row(position);
  const std::vector<double> by_row(row, row + rows_);
  double value = 0;
  for (std::size_t r = 0; r < rows_; ++r) value += by_row[r] * left_[r];
  const double basic = fraction_of(value);
  if (basic < kLeastFraction || basic > 1 - kLeastFraction) return std::nullopt;
  Cut cut{.amounts = std::vector<double>(knapsack_.options.size()), .limit = kCutTolerance - 1};
  std::vector<double> slacks(rows_, 0);  // the factors of rows' slacks
  for (std::size_t r = 0; r < rows_; ++r) {
    if (is_slack(position) && (basis_[position] & ~kSlack) == r) continue;
    slacks[r] = knapsack_.kinds[r] == RowKind::any ? any_factor(by_row[r], basic)
                                                   : whole_factor(by_row[r], basic);
    cut.limit += slacks[r] * knapsack_.limits[r];
  }
  // Slacks are what options leave of limits; and one option of each group is chosen, so that the
  // same may be taken from the amounts of all.
  double greatest = 0;
  for (std::size_t g = 0; g < knapsack_.groups(); ++g) {
    const double of_key = weighted(group_keys_[g], by_row);
    double least = HUGE_VAL;
    for (std::size_t o = knapsack_.begin[g]; o < knapsack_.begin[g + 1]; ++o) {
      const bool is_basic = o == group_keys_[g] || (!is_slack(position) && o == basis_[position]);
      const double factor = is_basic ? 0 : whole_factor(weighted(o, by_row) - of_key, basic);
      cut.amounts[o] = weighted(o, slacks) - factor;
      least = std::min(least, cut.amounts[o]);
    }
    cut.limit -= least;
    for (std::size_t o = knapsack_.begin[g]; o < knapsack_.begin[g + 1]; ++o)
      greatest = std::max(greatest, cut.amounts[o] -= least);
  }
  if (greatest == 0) return std::nullopt;
  for (double& amount : cut.amounts) amount /= greatest;
  cut.limit /= greatest;
  return cut;
}

std::vector<Cut> Relaxation::cuts() const {
  std::vector<Cut> found;
  for (std::size_t i = 0; i < rows_; ++i) {
    if (is_slack(i) && knapsack_.kinds[basis_[i] & ~kSlack] != RowKind::whole) continue;
    if (auto cut = cut_of(i)) found.push_back(std::move(*cut));
  }
  return found;
}

Knapsack strengthened(const Knapsack& knapsack, Budget& budget) {
  Knapsack strong = knapsack, strongest = knapsack;
  std::vector<Cut> cuts;
  std::optional<Relaxation::Basis> basis;  // of the round before, in the rows of this one
  double first = 0, best = -HUGE_VAL;
  int idle = 0;
  for (int round = 0; round < kCutRounds && idle <= kMostIdleRounds; ++round) {
    Relaxation lp(strong);
    if (basis) lp.restore(*basis);
    Budget part = budget;
    part.iterations = std::min(budget.iterations, iterations_of_round(strong));
    const std::int64_t before = part.iterations;
    const auto outcome = lp.solve(HUGE_VAL, part);
    const double bound = lp.bound(part);
    budget.iterations -= before - part.iterations;
    budget.stopped = part.stopped;
    if (round == 0) first = best = bound;
    idle = bound - best > kWorthwhileRise * (best - first) ? 0 : idle + 1;
    if (bound > best) best = bound, strongest = strong;
    if (outcome != Relaxation::Outcome::optimal) break;
    std::vector<Cut> found = lp.cuts();
    if (found.empty()) break;
    basis = without_idle_cuts(lp.basis(), knapsack.limits.size(), cuts);
    for (std::size_t c = 0; c < found.size(); ++c)
      basis->columns.push_back(Relaxation::slack_of(knapsack.limits.size() + cuts.size() + c));
    std::ranges::move(found, std::back_inserter(cuts));
    strong = with_cuts(knapsack, cuts);
    budget.iterations -= static_cast<std::int64_t>(strong.uses.size());
  }
  return strongest;
}

}  // namespace berth::fleet
