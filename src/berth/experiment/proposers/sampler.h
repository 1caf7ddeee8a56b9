// A sampler draws the points of a search whose trials all cost the same: what the proposers of
// tpe, cma-es, gp and nsga2 have in common, and what each of them is. Like a proposer it is a
// function of what it was told, in whatever order. Pure.
#pragma once

#include <map>

#include "berth/base/rng.h"
#include "berth/experiment/pareto.h"

namespace berth::experiment {

/// The coordinate of each parameter (space.h); nullopt: the point does not have it.
using Parts = std::vector<std::optional<double>>;
Parts parts_of(const std::vector<Parameter>& params, const Values& values);

/// What was told of a trial.
struct Heard {
  Parts parts{};
  bool over = false;
  Merit merit{};                   // once it is over
  std::vector<double> excesses{};  // as TrialReport::excesses
  /// Whether it has come to something.
  bool scored() const { return !merit.scores.empty(); }
};

/// What was told of all trials, by their numbers.
using History = std::map<std::int64_t, Heard>;
/// Adds a trial or its end. Returns whether it has ended with this.
bool add(History& history, const std::vector<Parameter>& params, const TrialReport& trial);

class Sampler {
 public:
  virtual ~Sampler() = default;
  /// A trial that is to run, and later the same trial with its end.
  virtual void tell(const TrialReport& trial) = 0;
  /// The point of trial `number`, which is 1 or more.
  virtual Values propose(std::int64_t number) const = 0;
};

/// The quasi-random point of a trial, from a Sobol sequence. The first trials begin with these.
Values quasi_random(const std::vector<Parameter>& params, std::int64_t number, std::uint64_t seed);

/// Standard normal.
double normal(Rng& rng);

}  // namespace berth::experiment
