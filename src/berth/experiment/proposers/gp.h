// Search by a Gaussian process (Jones, Schonlau and Welch, 1998): the next point is the one from
// which the greatest improvement is to be expected, by what the process tells of all points. A few
// quasi-random points come first. Scores are made like a normal distribution beforehand; failed
// trials count as the worst; open ones as what is expected of them, so that many trials side by
// side spread out. Several goals are one by random weights, other ones for each proposal (ParEGO;
// Knowles, 2006). Each constraint has a process of its own. Pure.
#pragma once

#include "berth/experiment/proposers/sampler.h"

namespace berth::experiment {

/// A proposal costs some 0.2 s with as many trials as this, and ever more.
inline constexpr std::int64_t kMostGpTrials = 500;

class Gp final : public Sampler {
 public:
  Gp(std::vector<Parameter> params, std::uint64_t seed);
  ~Gp() override;
  void tell(const TrialReport& trial) override;
  Values propose(std::int64_t number) const override;

 private:
  struct Fitted;
  const Fitted& fitted() const;

  std::vector<Parameter> params_;
  std::uint64_t seed_;
  History history_;
  std::int64_t over_ = 0;                   // trials that have ended
  mutable std::unique_ptr<Fitted> fitted_;  // the kernel, and what it was fitted to
};

/// The score that each ended trial has in the eyes of proposal `number`, greater is better; failed
/// ones: -HUGE_VAL. Of several goals it is the weighted distance from the best of the worst goal.
std::map<std::int64_t, double> single_scores(const History& history, std::int64_t number,
                                             std::uint64_t seed);

}  // namespace berth::experiment
