// Which parameters decide the score: functional analysis of variance on a random forest (fANOVA;
// Hutter, Hoos, Leyton-Brown, 2014). The forest is fitted to the recorded trials; a parameter's
// share is the part of the forest's variance that its marginal has, the mean over all others by
// the values that were tried. Pure: the same trials and seed give the same answer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "berth/experiment/program.h"

namespace berth::experiment {

struct ScoredTrial {
  Values params;
  double score = 0;  // finite
};

struct Importance {
  std::string parameter;
  double share = 0;         // of the variance, 0 to 1, the mean over the trees
  double deviation = 0;     // of that between the trees
  std::int64_t trials = 0;  // that have the parameter
  std::int64_t values = 0;  // different ones
};

struct Importances {
  std::vector<Importance> parameters{};  // the most important first
  double together = 0;                   // the share that only combinations of parameters explain
  double predicted = 0;  // of the scores' variance, how much trees predict that had not seen the
                         // trial: 1 all, 0 or less nothing
  std::int64_t trials = 0;
};

/// Fewer trials than this tell nothing.
inline constexpr std::size_t kFewestForImportance = 10;
/// Only so many of the latest trials count.
inline constexpr std::size_t kMostForImportance = 5000;

/// Values that are all numbers are ordered, and up to 32 groups of as many trials; others are
/// categories, of which all but the 62 most frequent are one. What a conditional parameter decides
/// is looked at among the trials that have it, weighted by their part. A score that lies beyond the
/// quartiles by more than three times their distance counts as one at that distance: trials that
/// diverged would hide all else. Errors: busy where the trials are too few, or all have the same
/// score or parameters.
Result<Importances> importances(std::span<const ScoredTrial> trials, std::uint64_t seed);

}  // namespace berth::experiment
