// The linear relaxation of a multiple-choice knapsack (knapsack.h): a group may take fractions of
// its options that add up to one. It is solved by the dual simplex method with generalised upper
// bounds (Dantzig and Van Slyke 1967): each group has a group key, the option that takes what the
// others leave, so that the basis has one row for each limit only, and a group's switch from one
// key to another needs no pivot. A dual step goes as far as the bound rises, past such switches
// (long steps, Maros 2003).
//
// At the optimum at most as many groups are fractional as there are rows; the others are whole.
//
// Many options use the same amounts of the same rows. Such a use pattern is priced once for all of
// them.
//
// Pure; one thread each.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "berth/fleet/solver/knapsack.h"

namespace berth::fleet {

/// A row that holds of every choice within the other rows: amounts by option, >= 0.
struct Cut {
  std::vector<double> amounts;
  double limit = 0;
};

class Relaxation {
  static constexpr std::uint32_t kSlack = 1u << 31;  // in a basis: the slack of the row added to it

 public:
  /// The problem must outlive its relaxation.
  explicit Relaxation(const Knapsack& knapsack);

  /// `optimal`; `infeasible`: no choice is within the limits; `enough`: the bound has reached the
  /// value of that name; `given_up`: the budget is spent, or rounding prevents another step. Prices
  /// and bound are valid in every case but `infeasible`.
  enum class Outcome : std::uint8_t { optimal, infeasible, enough, given_up };
  Outcome solve(double enough, Budget& budget);

  void forbid(std::uint32_t option);
  bool allowed(std::uint32_t option) const { return columns_[option].is_allowed; }

  /// The prices by row, >= 0.
  const std::vector<double>& prices() const { return prices_; }
  /// A lower bound on every choice of the allowed options, valid despite all rounding so far.
  double bound(Budget& budget);
  /// How much dearer the option is than the cheapest one of its group, at the prices of the last
  /// bound().
  double reduced_cost(std::uint32_t option) const {
    return knapsack_.options[option].cost + at_prices_[pattern_of_[option]] -
           least_[group_of_[option]];
  }

  struct Fraction {
    std::uint32_t group, option;
    double part;  // between 0 and 1
  };
  /// The options with a fraction above 0 in fractional groups; after `optimal`.
  std::vector<Fraction> fractions() const;
  /// What the fractions violate (cuts.cc); after `optimal`, while every option is allowed.
  std::vector<Cut> cuts() const;
  /// The option with the greatest fraction of each group.
  Chosen rounded() const;

  /// The current basis, to be restored when the options forbidden since are allowed again.
  struct Basis {
    std::vector<std::uint32_t> group_keys, columns;
  };
  Basis basis() const { return {group_keys_, basis_}; }
  /// Whether an entry of Basis::columns is the slack of a row, and no option.
  static bool is_row(std::uint32_t basic) { return (basic & kSlack) != 0; }
  static std::size_t row_of(std::uint32_t basic) { return basic & ~kSlack; }
  static std::uint32_t slack_of(std::size_t row) {
    return kSlack | static_cast<std::uint32_t>(row);
  }
  void allow(std::uint32_t option) { columns_[option].is_allowed = true; }
  void restore(const Basis& basis);

 private:
  /// The point of a dual step where another option of a group, or the slack of a row, becomes as
  /// good as the present one.
  struct Breakpoint {
    double at = 0, slope = 0;                    // of its reduced cost there: < 0
    std::uint32_t group = 0;                     // groups(): none
    std::uint32_t entering = 0;                  // as in basis_
    bool operator<(const Breakpoint& b) const {  // for a heap with the first on top
      if (at != b.at) return at > b.at;
      return slope != b.slope ? slope > b.slope : group > b.group;
    }
  };
  struct Column {
    double cost;  // perturbed, so that no two are equal
    bool is_allowed;
  };
  struct Leaving {
    std::size_t position = 0;
    double sign = 0;   // +1: the value is below 0; -1: above 0 and forbidden; 0: none leaves
    double slope = 0;  // by how much
  };
  bool is_slack(std::size_t position) const { return is_row(basis_[position]); }
  double* inverse_row(std::size_t position) { return &inverse_[position * rows_]; }
  const double* inverse_row(std::size_t position) const { return &inverse_[position * rows_]; }
  double weighted(std::size_t option, const std::vector<double>& by_row) const {
    return knapsack_.weighted(knapsack_.options[option], by_row);
  }
  double priced(std::size_t option) const {
    return columns_[option].cost + at_prices_[pattern_of_[option]];
  }
  void find_patterns();
  /// What each pattern comes to at the factors of the rows.
  void weigh(const std::vector<double>& by_row, std::vector<double>& by_pattern) const {
    for (std::size_t p = 0; p < by_pattern.size(); ++p)
      by_pattern[p] = weighted(option_of_[p], by_row);
  }
  std::span<const Use> uses_of(std::uint32_t option) const {
    return knapsack_.uses_of(knapsack_.options[option]);
  }
  void add_columns();
  std::optional<Cut> cut_of(std::size_t position) const;
  bool factor();
  void restart();
  void count_basics();
  void compute_values();
  double objective() const;
  bool is_accurate() const;

  Leaving choose_leaving();
  void consider(std::size_t position, double value, bool is_forbidden, double norm, double& best,
                Leaving& leaving) const;
  void swap_group_key(std::uint32_t group, std::size_t position);
  void set_group_key(std::uint32_t group, std::uint32_t option);
  bool flip_forbidden_group_key(std::uint32_t group);
  bool step(const Leaving& leaving, Budget& budget, bool& is_infeasible);
  void find_breakpoints(double slope);
  double trim_breakpoints(double slope, double end);
  void set_end_prices(double end);
  bool next_breakpoint(std::uint32_t group, Breakpoint& next) const;
  bool pivot(std::size_t position, std::uint32_t entering);

  const Knapsack& knapsack_;
  const std::size_t rows_;
  std::vector<Column> columns_;            // by option
  std::vector<std::uint32_t> group_of_;    // by option
  std::vector<std::uint32_t> pattern_of_;  // by option
  std::vector<std::uint32_t> option_of_;   // by pattern: one that has it
  std::vector<std::uint32_t> group_keys_;  // by group: option
  std::vector<std::uint16_t> basics_;      // by group: how many of its options are in the basis
  std::vector<std::uint32_t> basis_;       // by position: option, or kSlack + row
  std::vector<std::uint32_t> forbidden_group_keys_;  // groups, some of which have a forbidden key
  std::vector<double> inverse_;                      // of the basis' columns, by position and row
  std::vector<double> values_;                       // by position
  std::vector<double> left_;                         // what the keys leave of the limits, by row
  std::vector<double> prices_, along_, ahead_;       // by row
  std::vector<double> at_prices_, at_along_, at_ahead_;  // the same by pattern
  std::vector<double> least_;                            // by group, as of the last bound()
  std::vector<Breakpoint> breakpoints_;
  double key_costs_ = 0;
  int pivots_ = 0;  // since the basis was inverted anew
};

/// The same problem with rows for cuts, so that its relaxation is nearer to the optimum.
Knapsack strengthened(const Knapsack& knapsack, Budget& budget);

}  // namespace berth::fleet
