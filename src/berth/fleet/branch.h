// Depth first over what may be better than a cutoff, with the linear relaxation as the bound.
//
// Pure; one thread each.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "berth/fleet/choices.h"

namespace berth::fleet {

/// What remains of a problem, and what is taken already, by tag.
struct Node {
  Choices open;
  std::vector<std::uint32_t> taken;
  double cost = 0;  // of what is taken
};

/// The options that stay, by place; groups with one left are taken. The places of the kept ones in
/// the old problem go to `kept`. False: of a group nothing is left, or not all that is taken fits.
bool narrow(const Node& from, const std::vector<bool>& stays, Node& to,
            std::vector<std::uint32_t>& kept);

/// How a search chooses the option to decide on: that which is worth the most, several such at once
/// and not for long, or that which proves to make most of a difference. None is always the best.
enum class Branching : std::uint8_t { by_worth, hasty, by_trial };

/// What is looked for, and what came of it.
struct Hunt {
  Budget& budget;
  Branching branching = Branching::by_worth;
  double cutoff = 0;                   // only what costs less is of use,
  double less = 0;                     // and by so much
  int turns_left = 100;                // hasty: how many dead ends it may still meet
  double unfinished = HUGE_VAL;        // the least bound of what was not looked at
  std::vector<std::uint32_t> found{};  // tags; empty: nothing. The cutoff is then what it costs

  bool is_too_dear(const Choices& choices, double bound) const;
};
void search(Node node, Hunt& hunt);

/// Of whole costs a bound may be rounded up.
double whole(const Choices& choices, double bound);

}  // namespace berth::fleet
