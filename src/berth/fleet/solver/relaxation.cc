#include "berth/fleet/solver/relaxation.h"

#include <algorithm>
#include <cmath>

namespace berth::fleet {
namespace {

constexpr double kInfeasible = 1e-8;  // how far beyond its limits a value may be
constexpr double kTiny = 1e-9;        // what of a step's slopes is none
constexpr double kHinders = 1e-6;     // the least by which a limit is missed for certain
constexpr double kInaccurate = 1e-9;  // of the amounts in a row
constexpr std::size_t kToTrim = 32;   // breakpoints
constexpr int kPivotsOfAnInverse = 30;

}  // namespace

Relaxation::Relaxation(const Knapsack& knapsack)
    : knapsack_(knapsack), rows_(knapsack.limits.size()) {
  basics_.resize(knapsack.groups());
  least_.resize(knapsack.groups());
  inverse_.resize(rows_ * rows_);
  values_.resize(rows_);
  for (auto* by_row : {&prices_, &along_, &ahead_}) by_row->resize(rows_);
  add_columns();
  find_patterns();
  for (std::uint32_t r = 0; r < rows_; ++r) basis_.push_back(kSlack + r);
  restore(basis());
}

void Relaxation::restore(const Basis& basis) {
  group_keys_ = basis.group_keys;
  basis_ = basis.columns;
  forbidden_group_keys_.clear();
  count_basics();
  if (factor())
    compute_values();
  else
    restart();
}

/// From prices of 0, where each group's key is its cheapest option.
void Relaxation::restart() {
  for (std::uint32_t r = 0; r < rows_; ++r) basis_[r] = kSlack + r;
  for (std::size_t g = 0; g < knapsack_.groups(); ++g) {
    double least = HUGE_VAL;
    for (std::size_t o = knapsack_.begin[g]; o < knapsack_.begin[g + 1]; ++o)
      if (columns_[o].is_allowed && columns_[o].cost < least)
        least = columns_[o].cost, group_keys_[g] = static_cast<std::uint32_t>(o);
    if (least == HUGE_VAL) forbidden_group_keys_.push_back(static_cast<std::uint32_t>(g));
  }
  count_basics();
  factor();
  compute_values();
}

/// What follows from the keys and the basis.
void Relaxation::count_basics() {
  std::ranges::fill(basics_, 0);
  for (std::size_t i = 0; i < rows_; ++i)
    if (!is_slack(i)) ++basics_[group_of_[basis_[i]]];
  left_ = knapsack_.limits;
  key_costs_ = 0;
  for (const std::uint32_t key : group_keys_) {
    for (const Use& use : uses_of(key)) left_[use.row] -= use.amount;
    key_costs_ += columns_[key].cost;
  }
}

/// Inverts the basis by Gauss and Jordan. False: it is singular.
bool Relaxation::factor() {
  const std::size_t n = rows_;
  std::vector<double> matrix(n * n, 0);
  std::ranges::fill(inverse_, 0);
  for (std::size_t i = 0; i < n; ++i) {
    inverse_[i * n + i] = 1;
    if (is_slack(i)) {
      matrix[(basis_[i] & ~kSlack) * n + i] = 1;
      continue;
    }
    const std::uint32_t option = basis_[i], key = group_keys_[group_of_[option]];
    for (const Use& use : uses_of(option)) matrix[use.row * n + i] += use.amount;
    for (const Use& use : uses_of(key)) matrix[use.row * n + i] -= use.amount;
  }
  for (std::size_t c = 0; c < n; ++c) {
    std::size_t best = c;
    for (std::size_t r = c + 1; r < n; ++r)
      if (std::abs(matrix[r * n + c]) > std::abs(matrix[best * n + c])) best = r;
    const double by = matrix[best * n + c];
    if (std::abs(by) < kTiny) return false;
    for (std::size_t k = 0; k < n; ++k) {
      std::swap(matrix[best * n + k], matrix[c * n + k]);
      std::swap(inverse_[best * n + k], inverse_[c * n + k]);
      matrix[c * n + k] /= by;
      inverse_[c * n + k] /= by;
    }
    for (std::size_t r = 0; r < n; ++r) {
      const double times = matrix[r * n + c];
      if (r == c || times == 0) continue;
      for (std::size_t k = 0; k < n; ++k) {
        matrix[r * n + k] -= times * matrix[c * n + k];
        inverse_[r * n + k] -= times * inverse_[c * n + k];
      }
    }
  }
  pivots_ = 0;
  return true;
}

/// Values and prices of the basis.
void Relaxation::compute_values() {
  std::ranges::fill(prices_, 0);
  for (std::size_t i = 0; i < rows_; ++i) {
    const double* row = inverse_row(i);
    values_[i] = 0;
    for (std::size_t r = 0; r < rows_; ++r) values_[i] += row[r] * left_[r];
    if (is_slack(i)) continue;
    const double dearer =
        columns_[basis_[i]].cost - columns_[group_keys_[group_of_[basis_[i]]]].cost;
    for (std::size_t r = 0; r < rows_; ++r) prices_[r] -= dearer * row[r];
  }
  for (double& price : prices_) price = std::max(price, 0.0);
  weigh(prices_, at_prices_);
}

/// Whether the values are right in spite of the roundings of all pivots since the last inversion.
bool Relaxation::is_accurate() const {
  std::vector<double> left = left_, size(rows_, 1);
  const auto take = [&](std::uint32_t option, double times) {
    for (const Use& use : uses_of(option)) {
      left[use.row] -= times * use.amount;
      size[use.row] += std::abs(times * use.amount);
    }
  };
  for (std::size_t i = 0; i < rows_; ++i) {
    if (is_slack(i)) {
      left[basis_[i] & ~kSlack] -= values_[i];
      continue;
    }
    take(basis_[i], values_[i]);
    take(group_keys_[group_of_[basis_[i]]], -values_[i]);
  }
  for (std::size_t r = 0; r < rows_; ++r)
    if (std::abs(left[r]) > kInaccurate * size[r]) return false;
  return true;
}

double Relaxation::objective() const {
  double sum = key_costs_;
  for (std::size_t i = 0; i < rows_; ++i)
    if (!is_slack(i))
      sum += values_[i] *
             (columns_[basis_[i]].cost - columns_[group_keys_[group_of_[basis_[i]]]].cost);
  return sum;
}

double Relaxation::bound(Budget& budget) {
  budget.iterations -= static_cast<std::int64_t>(knapsack_.options.size() + rows_ * rows_ * rows_);
  double sum = 0, terms = 0;
  for (std::size_t g = 0; g < knapsack_.groups(); ++g) {
    double least = HUGE_VAL;
    for (std::size_t o = knapsack_.begin[g]; o < knapsack_.begin[g + 1]; ++o)
      if (columns_[o].is_allowed)
        least = std::min(least, knapsack_.options[o].cost + at_prices_[pattern_of_[o]]);
    least_[g] = least;
    sum += least;
    terms += std::abs(least);
  }
  for (std::size_t r = 0; r < rows_; ++r) {
    sum -= prices_[r] * knapsack_.limits[r];
    terms += prices_[r] * std::abs(knapsack_.limits[r]);
  }
  // What rounding may have added: each addition at most 2^-53 of what there was.
  return sum - terms * static_cast<double>(knapsack_.groups() + rows_ + 4) * 0x1p-52;
}

void Relaxation::set_group_key(std::uint32_t group, std::uint32_t option) {
  const std::uint32_t old = group_keys_[group];
  for (const Use& use : uses_of(old)) left_[use.row] += use.amount;
  for (const Use& use : uses_of(option)) left_[use.row] -= use.amount;
  key_costs_ += columns_[option].cost - columns_[old].cost;
  group_keys_[group] = option;
}

/// The group's key and its option at the position change roles.
void Relaxation::swap_group_key(std::uint32_t group, std::size_t position) {
  const std::uint32_t key = group_keys_[group];
  double* row = inverse_row(position);
  for (std::size_t i = 0; i < rows_; ++i) {
    if (i == position || is_slack(i) || group_of_[basis_[i]] != group) continue;
    const double* other = inverse_row(i);
    for (std::size_t r = 0; r < rows_; ++r) row[r] += other[r];
  }
  for (std::size_t r = 0; r < rows_; ++r) row[r] = -row[r];
  set_group_key(group, basis_[position]);
  basis_[position] = key;
}

void Relaxation::forbid(std::uint32_t option) {
  columns_[option].is_allowed = false;
  if (group_keys_[group_of_[option]] == option) forbidden_group_keys_.push_back(group_of_[option]);
}

/// Where the key takes all of its group another one does so at once. False: that may not.
bool Relaxation::flip_forbidden_group_key(std::uint32_t group) {
  std::uint32_t best = UINT32_MAX;
  double least = HUGE_VAL;
  for (std::size_t o = knapsack_.begin[group]; o < knapsack_.begin[group + 1]; ++o)
    if (columns_[o].is_allowed && priced(o) < least)
      least = priced(o), best = static_cast<std::uint32_t>(o);
  if (best == UINT32_MAX) return false;
  set_group_key(group, best);
  return true;
}

void Relaxation::consider(std::size_t position, double value, bool is_forbidden, double norm,
                          double& best, Leaving& leaving) const {
  const double beyond = value < 0 ? -value : is_forbidden ? value : 0;
  if (beyond <= kInfeasible) return;
  const double merit = beyond * beyond / norm;
  if (merit <= best) return;
  best = merit;
  leaving = {position, value < 0 ? 1.0 : -1.0, beyond};
}

/// Of the values beyond their limits the one that promises the steepest way; where that is a key it
/// is put into the basis.
Relaxation::Leaving Relaxation::choose_leaving() {
  Leaving leaving, of_key;
  double best = 0;
  std::vector<double> sum(rows_);
  for (std::size_t i = 0; i < rows_; ++i) {
    const double* row = inverse_row(i);
    double norm = 1e-9;
    for (std::size_t r = 0; r < rows_; ++r) norm += row[r] * row[r];
    if (is_slack(i)) {
      consider(i, values_[i], false, norm, best, leaving);
      continue;
    }
    consider(i, values_[i], !columns_[basis_[i]].is_allowed, norm, best, leaving);
  }
  for (std::size_t i = 0; i < rows_; ++i) {
    if (is_slack(i)) continue;
    const std::uint32_t group = group_of_[basis_[i]];
    double value = 1;
    bool is_first = true;
    std::ranges::fill(sum, 0);
    for (std::size_t k = 0; k < rows_; ++k) {
      if (is_slack(k) || group_of_[basis_[k]] != group) continue;
      is_first = is_first && k >= i;
      value -= values_[k];
      for (std::size_t r = 0; r < rows_; ++r) sum[r] += inverse_row(k)[r];
    }
    if (!is_first) continue;
    double norm = 1e-9;
    for (std::size_t r = 0; r < rows_; ++r) norm += sum[r] * sum[r];
    const double before = best;
    consider(i, value, !columns_[group_keys_[group]].is_allowed, norm, best, leaving);
    if (best > before) of_key = leaving;
  }
  if (of_key.sign != 0 && of_key.position == leaving.position && of_key.slope == leaving.slope) {
    const std::size_t at = leaving.position;
    swap_group_key(group_of_[basis_[at]], at);
  }
  return leaving;
}

bool Relaxation::next_breakpoint(std::uint32_t group, Breakpoint& next) const {
  const double key_cost = priced(group_keys_[group]);
  const double key_slope = at_along_[pattern_of_[group_keys_[group]]];
  double dearer = 1, slope = 0;  // of the first; it is at dearer / -slope
  std::size_t first = 0;
  for (std::size_t o = knapsack_.begin[group]; o < knapsack_.begin[group + 1]; ++o) {
    if (!columns_[o].is_allowed) continue;
    const double by = at_along_[pattern_of_[o]] - key_slope;
    if (by >= -kTiny) continue;
    const double cost = std::max(0.0, priced(o) - key_cost);
    const double sooner = cost * slope - dearer * by;  // > 0: than the first
    if (sooner > 0 || (sooner == 0 && by < slope)) dearer = cost, slope = by, first = o;
  }
  if (slope == 0) return false;
  next = {dearer / -slope, slope, group, static_cast<std::uint32_t>(first)};
  return true;
}

/// What is behind the point where the bound no longer rises, by the breakpoints found so far, is of
/// no use: drops it. That point.
double Relaxation::trim_breakpoints(double slope, double end) {
  slope +=
      kHinders * (1 + slope);  // the sum may be a little more than here when it is gone through
  std::ranges::sort(breakpoints_, {}, &Breakpoint::at);
  for (std::size_t i = 0; i < breakpoints_.size(); ++i) {
    const Breakpoint& point = breakpoints_[i];
    slope += point.slope;
    if (point.at >= end || slope > kInfeasible) continue;
    end = point.at;
    while (i + 1 < breakpoints_.size() && breakpoints_[i + 1].at <= end) ++i;
    breakpoints_.resize(i + 1);
  }
  return end;
}

/// Prices at the end of the way, where that is known.
void Relaxation::set_end_prices(double end) {
  if (end == HUGE_VAL) return;
  for (std::size_t r = 0; r < rows_; ++r) ahead_[r] = prices_[r] + end * along_[r];
  weigh(ahead_, at_ahead_);
}

/// The first breakpoint of each group, as far as the bound rises.
void Relaxation::find_breakpoints(double slope) {
  breakpoints_.clear();
  const auto none = static_cast<std::uint32_t>(knapsack_.groups());
  double end = HUGE_VAL;  // of the way
  for (std::uint32_t r = 0; r < rows_; ++r)
    if (along_[r] < -kTiny && std::ranges::find(basis_, kSlack + r) == basis_.end()) {
      breakpoints_.push_back({prices_[r] / -along_[r], along_[r], none, kSlack + r});
      end = std::min(end, breakpoints_.back().at);
    }
  set_end_prices(end = trim_breakpoints(slope, end));
  std::size_t enough = kToTrim;
  Breakpoint next;
  for (std::uint32_t g = 0; g < none; ++g) {
    if (end < HUGE_VAL) {
      // Only who is cheaper at the end of the way than the key is there overtakes it before.
      const std::uint32_t key = group_keys_[g];
      const double at_end = columns_[key].cost + at_ahead_[pattern_of_[key]];
      bool is_overtaken = false;
      for (std::size_t o = knapsack_.begin[g]; o < knapsack_.begin[g + 1]; ++o)
        is_overtaken |= columns_[o].cost + at_ahead_[pattern_of_[o]] <= at_end && o != key;
      if (!is_overtaken) continue;
    }
    if (!next_breakpoint(g, next) || next.at > end) continue;
    breakpoints_.push_back(next);
    if (basics_[g] > 0) set_end_prices(end = next.at);
    if (breakpoints_.size() < enough) continue;
    set_end_prices(end = trim_breakpoints(slope, end));
    enough = 2 * breakpoints_.size() + kToTrim;
  }
  std::make_heap(breakpoints_.begin(), breakpoints_.end());
}

/// From the leaving value's row as far as the bound rises. False: rounding is in the way.
bool Relaxation::step(const Leaving& leaving, Budget& budget, bool& is_infeasible) {
  // What the basis costs is counted too: that is most of the work where there are few options.
  budget.iterations -= static_cast<std::int64_t>(knapsack_.options.size() + 6 * rows_ * rows_);
  for (std::size_t r = 0; r < rows_; ++r)
    along_[r] = leaving.sign * inverse_row(leaving.position)[r];
  weigh(along_, at_along_);
  find_breakpoints(leaving.slope);
  double slope = leaving.slope;
  while (!breakpoints_.empty()) {
    std::pop_heap(breakpoints_.begin(), breakpoints_.end());
    const Breakpoint point = breakpoints_.back();
    breakpoints_.pop_back();
    const bool may_switch = point.group < knapsack_.groups() && basics_[point.group] == 0;
    if (!may_switch || slope + point.slope <= kInfeasible)
      return pivot(leaving.position, point.entering);
    slope += point.slope;
    set_group_key(point.group, point.entering);
    if (Breakpoint next; next_breakpoint(point.group, next)) {
      next.at = std::max(next.at, point.at);
      breakpoints_.push_back(next);
      std::push_heap(breakpoints_.begin(), breakpoints_.end());
    }
  }
  is_infeasible = slope > kHinders;
  return is_infeasible;
}

bool Relaxation::pivot(std::size_t position, std::uint32_t entering) {
  std::vector<double> column(rows_, 0);
  for (std::size_t i = 0; i < rows_; ++i) {
    const double* row = inverse_row(i);
    if ((entering & kSlack) != 0) {
      column[i] = row[entering & ~kSlack];
      continue;
    }
    const std::uint32_t key = group_keys_[group_of_[entering]];
    for (const Use& use : uses_of(entering)) column[i] += row[use.row] * use.amount;
    for (const Use& use : uses_of(key)) column[i] -= row[use.row] * use.amount;
  }
  if (std::abs(column[position]) < kTiny) return false;
  double* row = inverse_row(position);
  for (std::size_t r = 0; r < rows_; ++r) row[r] /= column[position];
  for (std::size_t i = 0; i < rows_; ++i) {
    if (i == position || column[i] == 0) continue;
    for (std::size_t r = 0; r < rows_; ++r) inverse_row(i)[r] -= column[i] * row[r];
  }
  if (!is_slack(position)) {
    const std::uint32_t group = group_of_[basis_[position]];
    if (--basics_[group] == 0 && !columns_[group_keys_[group]].is_allowed)
      forbidden_group_keys_.push_back(group);
  }
  basis_[position] = entering;
  if (!is_slack(position)) ++basics_[group_of_[entering]];
  ++pivots_;
  return true;
}

Relaxation::Outcome Relaxation::solve(double enough, Budget& budget) {
  const std::size_t most = 200 + 20 * rows_ * rows_;
  for (std::size_t steps = 0; steps < most && !budget.spent(); ++steps) {
    if (pivots_ > kPivotsOfAnInverse && !factor()) restart();
    compute_values();
    for (const std::uint32_t group : forbidden_group_keys_)
      if (basics_[group] == 0 && !columns_[group_keys_[group]].is_allowed &&
          !flip_forbidden_group_key(group))
        return Outcome::infeasible;
    if (!forbidden_group_keys_.empty()) {
      forbidden_group_keys_.clear();
      compute_values();
    }
    if (objective() >= enough) return Outcome::enough;
    const Leaving leaving = choose_leaving();
    if (leaving.sign == 0) {
      if (pivots_ == 0 || is_accurate()) return Outcome::optimal;
      if (!factor()) restart();
      continue;
    }
    bool is_infeasible = false;
    if (!step(leaving, budget, is_infeasible)) return Outcome::given_up;
    if (is_infeasible) return Outcome::infeasible;
  }
  return Outcome::given_up;
}

std::vector<Relaxation::Fraction> Relaxation::fractions() const {
  std::vector<Fraction> fractions;
  for (std::uint32_t g = 0; g < knapsack_.groups(); ++g) {
    if (basics_[g] == 0) continue;
    double key = 1;
    const std::size_t first = fractions.size();
    for (std::size_t i = 0; i < rows_; ++i) {
      if (is_slack(i) || group_of_[basis_[i]] != g) continue;
      key -= values_[i];
      if (values_[i] > kInfeasible) fractions.push_back({g, basis_[i], values_[i]});
    }
    if (key > kInfeasible) fractions.push_back({g, group_keys_[g], key});
    if (fractions.size() - first == 1) fractions.pop_back();
  }
  return fractions;
}

Chosen Relaxation::rounded() const {
  Chosen chosen = group_keys_;
  std::vector<double> most(knapsack_.groups(), 1);
  for (std::size_t i = 0; i < rows_; ++i)
    if (!is_slack(i)) most[group_of_[basis_[i]]] -= values_[i];
  for (std::size_t i = 0; i < rows_; ++i) {
    if (is_slack(i)) continue;
    const std::uint32_t group = group_of_[basis_[i]];
    if (values_[i] > most[group]) most[group] = values_[i], chosen[group] = basis_[i];
  }
  return chosen;
}

}  // namespace berth::fleet
