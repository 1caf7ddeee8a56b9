// A tree of Parzen estimators (Bergstra et al., 2011) proposes points where good trials are dense
// and others are not: the trials are split into the best few and the rest, a kernel density is put
// over each, and of some points drawn from the density of the good ones the point with the greatest
// ratio of the two densities is proposed. Where trials come one by one the densities are joint, so
// that interactions of parameters count; with many side by side, and under several goals, each
// parameter has its own. Under several goals the best are the first fronts; what breaks constraints
// is worse than what keeps them. Pure; a proposal costs the same after ten trials and after ten
// thousand, but for the length of a front.
#pragma once

#include <map>
#include <set>

#include "berth/experiment/proposers/sampler.h"

namespace berth::experiment {

class Model final : public Sampler {
 public:
  Model(std::vector<Parameter> params, std::uint64_t seed);

  /// Adds a trial, or its end. Open and failed trials count among the rest, so that their points
  /// are not proposed again.
  void tell(const TrialReport& trial) override;
  /// The number of trials with scores.
  std::size_t known() const { return by_loss_.size(); }
  Values propose(std::int64_t number) const override;

 private:
  struct Seen {
    Parts parts{};
    Merit merit{};
    bool over = false;
  };
  std::vector<std::int64_t> best(std::size_t count) const;

  std::vector<Parameter> params_;
  std::uint64_t seed_;
  std::map<std::int64_t, Seen> seen_;  // by number
  std::int64_t over_ = 0;              // of them
  /// By what it breaks and the first goal, the best first.
  std::set<std::pair<std::pair<double, double>, std::int64_t>> by_loss_;
  std::vector<std::int64_t> front_;  // those that none dominates
  std::set<Parts> points_;           // points of all trials
};

}  // namespace berth::experiment
