// NSGA-II (Deb et al., 2002): trials descend from the best ones so far, by simulated binary
// crossover and polynomial mutation of their coordinates; of all trials those of the first fronts
// survive, and of the last front that fits those in its least crowded parts. Several goals, or one.
//
// It follows the trials by their numbers, as cma_es.h does: each so many ended ones make a
// generation, so that with many trials side by side none waits for another. Pure.
#pragma once

#include <deque>
#include <set>

#include "berth/experiment/pareto.h"
#include "berth/experiment/proposers/sampler.h"

namespace berth::experiment {

class Nsga2 final : public Sampler {
 public:
  Nsga2(std::vector<Parameter> params, std::uint64_t seed);
  void tell(const TrialReport& trial) override;
  Values propose(std::int64_t number) const override;

 private:
  /// Those that survive a generation.
  struct State {
    struct Parent {
      Parts parts;
      Merit merit;
    };
    std::vector<Parent> parents{};     // the best first
    std::int64_t ended = 0;            // trials so far
    std::int64_t seen_to = INT64_MIN;  // the greatest number that it has heard of
  };
  const State& state() const;
  static std::vector<State::Parent> survivors(std::vector<State::Parent> all, std::size_t count);
  Values child(const State& state, std::int64_t number, int attempt) const;

  std::vector<Parameter> params_;
  std::uint64_t seed_;
  History history_;
  std::set<Parts> tried_;
  mutable std::deque<std::shared_ptr<const State>> states_;  // of the latest generations
};

}  // namespace berth::experiment
