// The linear relaxation of a problem of choices.h: a group may take parts of its options that add
// up to one. Solved by the dual simplex method with generalised upper bounds (Dantzig and Van Slyke
// 1967): each group has a key option that takes what the others leave, so that the basis has but a
// row for each limit, and a group's switch from one option to another needs no pivot. A step of the
// dual goes as far as the bound rises, past such switches (long steps, Maros 2003).
//
// At its optimum at most as many groups are in parts as there are rows; the others are whole.
//
// Pure; one thread each.
#pragma once

#include <cstdint>
#include <vector>

#include "berth/fleet/choices.h"

namespace berth::fleet {

class Relaxation {
  static constexpr std::uint32_t kSlack = 1u << 31;  // in a basis: of the row that is added

 public:
  explicit Relaxation(const Choices& choices);  // which must outlive it

  /// Optimal; no choice is left within the limits; the bound has reached `enough`; or the budget is
  /// spent, or rounding is in the way. Prices and bound hold in every case but the second.
  enum class Outcome : std::uint8_t { optimal, infeasible, enough, given_up };
  Outcome solve(double enough, Budget& budget);

  /// The option is no longer to be taken.
  void forbid(std::uint32_t option);
  bool allowed(std::uint32_t option) const { return columns_[option].is_allowed; }

  /// By row, >= 0.
  const std::vector<double>& prices() const { return prices_; }
  /// No choice of what is allowed costs less, whatever rounding there was on the way here.
  double bound(Budget& budget);
  /// By how much the option is dearer, at the prices of the last bound(), than the cheapest one of
  /// its group.
  double reduced_cost(std::uint32_t option) const {
    return choices_.options[option].cost + priced_amount(option) - least_[group_of_[option]];
  }

  struct Part {
    std::uint32_t group, option;
    double part;  // between 0 and 1
  };
  /// Of the groups that are in parts, all options that have one; after `optimal`.
  std::vector<Part> parts() const;
  /// Of each group the option that has the greatest part.
  Chosen mostly() const;

  /// Where it stands, to come back to when what was forbidden since is allowed again.
  struct Place {
    std::vector<std::uint32_t> keys, basis;
  };
  Place place() const { return {keys_, basis_}; }
  /// Of what is in a place's basis: whether it is what is left of a row, and no option.
  static bool is_row(std::uint32_t basic) { return (basic & kSlack) != 0; }
  void allow(std::uint32_t option) { columns_[option].is_allowed = true; }
  void go_to(const Place& place);

 private:
  /// Where on the way another option of a group, or a row that is left over, is as good as what is
  /// there now.
  struct Breakpoint {
    double at = 0, slope = 0;                    // how fast it grows better: < 0
    std::uint32_t group = 0;                     // groups(): of no group
    std::uint32_t entering = 0;                  // as in basis_
    bool operator<(const Breakpoint& b) const {  // of a heap with the first on top
      if (at != b.at) return at > b.at;
      return slope != b.slope ? slope > b.slope : group > b.group;
    }
  };
  struct Column {
    double cost;        // a little off, so that no two are equal
    double amount;      // 0 where it uses no row
    std::uint32_t row;  // the last one and one more: none
    bool is_allowed;
  };
  struct Leaving {
    std::size_t position = 0;
    double sign = 0;   // +1: it is below 0, -1: it is above 0 and forbidden; 0: there is none
    double slope = 0;  // by how much it is
  };
  bool is_slack(std::size_t position) const { return is_row(basis_[position]); }
  double* inverse_row(std::size_t position) { return &inverse_[position * rows_]; }
  const double* inverse_row(std::size_t position) const { return &inverse_[position * rows_]; }
  double priced_amount(std::size_t option) const {
    const Column& c = columns_[option];
    return prices_[c.row] * c.amount;
  }
  double priced(std::size_t option) const { return columns_[option].cost + priced_amount(option); }
  void add_columns();
  bool factor();
  void restart();
  void count();
  void figure();
  double objective() const;

  Leaving choose_leaving();
  void consider(std::size_t position, double value, bool is_forbidden, double norm, double& best,
                Leaving& leaving) const;
  void swap_key(std::uint32_t group, std::size_t position);
  void set_key(std::uint32_t group, std::uint32_t option);
  bool flip_forbidden_key(std::uint32_t group);
  bool step(const Leaving& leaving, Budget& budget, bool& is_infeasible);
  void find_breakpoints(double slope);
  double shorten(double slope, double end);
  void look_ahead(double end);
  bool next_breakpoint(std::uint32_t group, Breakpoint& next) const;
  bool pivot(std::size_t position, std::uint32_t entering);

  const Choices& choices_;
  const std::size_t rows_;
  std::vector<Column> columns_;                // by option
  std::vector<std::uint32_t> group_of_;        // by option
  std::vector<std::uint32_t> keys_;            // by group: option
  std::vector<std::uint16_t> basics_;          // by group: how many of its options are in the basis
  std::vector<std::uint32_t> basis_;           // by position: option, or kSlack + row
  std::vector<std::uint32_t> forbidden_keys_;  // groups, some of which have one
  std::vector<double> inverse_;                // of the basis' columns, by position and row
  std::vector<double> values_;                 // by position
  std::vector<double> left_;                   // of the limits, by the keys
  std::vector<double> prices_, along_, ahead_;  // by row, and 0 for none
  std::vector<double> least_;                   // by group, as of the last bound()
  std::vector<Breakpoint> breakpoints_;
  double key_costs_ = 0;
  int pivots_ = 0;  // since the basis was inverted afresh
};

}  // namespace berth::fleet
