// Which trials are better than others under several goals and constraints. Pure.
#pragma once

#include <vector>

#include "berth/experiment/proposers/proposer.h"

namespace berth::experiment {

/// What an ended trial came to, in the eyes of a search.
struct Merit {
  std::vector<double> scores{};  // as TrialReport::scores; none: it failed
  double violation = 0;          // of its constraints together; HUGE_VAL: it failed
};
Merit merit_of(const TrialReport& trial);

/// Whether a is better than b: it breaks less, or as much and is as good in all goals and better in
/// one (constrained domination; Deb et al., 2002).
bool dominates(const Merit& a, const Merit& b);

/// Indices of the merits by their front: the first front is dominated by none, the second one only
/// by the first, and so on until at least `enough` are sorted.
std::vector<std::vector<std::size_t>> fronts(const std::vector<const Merit*>& merits,
                                             std::size_t enough);

/// How far those of a front are from their neighbours in it (crowding distance; Deb et al., 2002);
/// HUGE_VAL at the ends of a goal.
std::vector<double> crowding(const std::vector<const Merit*>& front);

}  // namespace berth::experiment
