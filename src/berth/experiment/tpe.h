// A tree of Parzen estimators (Bergstra et al., 2011) proposes points where good trials are dense
// and others are not: the trials are split into the best few and the rest, a kernel density is put
// over each, and of some points drawn from the density of the good ones the point with the greatest
// ratio of the two densities is proposed. The densities are joint, so that interactions of
// parameters count. Pure; a proposal costs the same after ten trials and after ten thousand.
#pragma once

#include <map>
#include <set>

#include "berth/experiment/sampler.h"

namespace berth::experiment {

class Model final : public Sampler {
 public:
  Model(std::vector<Parameter> params, std::uint64_t seed);

  /// Adds a trial, or its end. Open and failed trials count among the rest, so that their points
  /// are not proposed again.
  void tell(const TrialReport& trial) override;
  /// The number of trials with scores.
  std::size_t known() const { return by_score_.size(); }
  Values propose(std::int64_t number) const override;

 private:
  struct Seen {
    std::vector<std::optional<double>> parts{};  // coordinate of each parameter that the trial has
    std::vector<double> scores{};
  };
  std::vector<std::int64_t> best(std::size_t count, std::int64_t number) const;

  std::vector<Parameter> params_;
  std::uint64_t seed_;
  std::map<std::int64_t, Seen> seen_;                    // by number
  std::set<std::pair<double, std::int64_t>> by_score_;   // by the first goal, the best first
  std::set<std::vector<std::optional<double>>> points_;  // points of all trials
};

}  // namespace berth::experiment
