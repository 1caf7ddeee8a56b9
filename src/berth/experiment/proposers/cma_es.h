// CMA-ES (Hansen, 2016) with negative weights and restarts with growing and small populations
// (BIPOP; Hansen, 2009) draws points from a normal distribution that learns the shape of what it
// descends. It follows the trials by their numbers: each `population` of ended ones makes a
// generation, so that with many trials side by side none waits for another.
//
// A whole number is heard as a point drawn from its share of the line, and the distribution is
// never narrower along it than that share: so it leaves the number now and then, as with the margin
// of Hamano et al. (2022). Choices have a distribution of their own, which moves to those of good
// trials (CatCMA; Hamano et al., 2024). A parameter that a trial does not have is heard as drawn.
// Failed trials are the worst, and those that break constraints come before them, the least broken
// first. One goal. Pure.
//
// Of some points that are drawn the one is proposed of which a quadratic model of the trials nearby
// expects most. Where many trials run side by side, the distribution lags behind by as many: then
// more points are drawn, and from a narrower one.
#pragma once

#include <deque>
#include <optional>

#include "berth/experiment/proposers/sampler.h"

namespace berth::experiment {

class QuadraticModel;

class CmaEs final : public Sampler {
 public:
  /// It begins with trial `from`, around the best of those before, as widely as the good ones lie,
  /// and with the shape of the valley that they lie in, if they tell of one.
  CmaEs(std::vector<Parameter> params, std::uint64_t seed, std::int64_t from = 1);
  void tell(const TrialReport& trial) override;
  Values propose(std::int64_t number) const override;

 private:
  struct State;
  struct Generation;
  std::size_t population() const;
  const State& state() const;
  std::shared_ptr<const State> first() const;
  std::shared_ptr<const State> after(const State& before,
                                     const std::vector<std::int64_t>& generation) const;
  std::optional<QuadraticModel> model_around(const State& now) const;

  std::vector<Parameter> params_;
  std::uint64_t seed_;
  std::int64_t from_;
  std::vector<std::size_t> ranges_, choices_;  // parameters, by what they are
  History history_;
  std::size_t over_ = 0;                                     // of these
  mutable std::deque<std::shared_ptr<const State>> states_;  // of the latest generations
};

}  // namespace berth::experiment
