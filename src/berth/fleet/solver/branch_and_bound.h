// Depth-first branch and bound over the choices that cost less than a cutoff. The bound is that of
// the linear relaxation.
//
// Pure; one thread each.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "berth/fleet/solver/knapsack.h"

namespace berth::fleet {

/// A node of the search tree: the remaining problem, and the tags of the options taken already.
struct Node {
  Knapsack open;
  std::vector<std::uint32_t> taken;
  double cost = 0;  // of the options taken
};

/// Reduces the problem to the options that stay, given by index; a group with one option left is
/// taken. `kept` receives the old indices of the remaining options. False if a group has no option
/// left, or the options taken do not fit.
bool narrow(const Node& from, const std::vector<bool>& stays, Node& to,
            std::vector<std::uint32_t>& kept);

/// How the search chooses the option to branch on: the one that uses the most of a row at the
/// prices (by_weight), several such at once with a bounded number of dead ends (diving), or the one
/// that raises the bound the most on trial (strong branching). None of them is always the best.
enum class Branching : std::uint8_t { by_weight, diving, strong };

/// The state of one branch-and-bound search: its limits, and the best choice found.
struct SearchState {
  Budget& budget;
  Branching branching = Branching::by_weight;
  double cutoff = 0;             // only choices that cost less are of use,
  double less = 0;               // and less by this much
  int dead_ends_left = 100;      // diving: how many dead ends may still be met
  double unfinished = HUGE_VAL;  // the least bound of the nodes that were not searched
  std::vector<std::uint32_t>
      found{};  // tags; then the cutoff is its cost. Empty: nothing was found

  bool is_pruned(const Knapsack& knapsack, double bound) const;
};
void search(Node node, SearchState& state);

/// The bound, rounded up if all costs are whole numbers.
double whole(const Knapsack& knapsack, double bound);

}  // namespace berth::fleet
