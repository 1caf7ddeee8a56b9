// Draws where good trials were dense and others were not: a tree of Parzen estimators (Bergstra et
// al., 2011). The trials are split into the best few and the rest; a density is put over each; of
// some points drawn from that of the good ones, the one is taken whose densities differ most. All
// parameters together, so that it sees what only matters in combination. Pure; an answer costs the
// same after ten trials and after ten thousand.
#pragma once

#include <map>
#include <set>

#include "berth/experiment/proposer.h"

namespace berth::experiment {

class Model {
 public:
  Model(std::vector<Parameter> params, std::uint64_t seed);

  /// Or that it ended. Open and failed ones count with the rest: what is being tried need not be
  /// tried again.
  void tell(const Told& trial);
  /// Trials with scores.
  std::size_t known() const { return by_score_.size(); }
  Values propose(std::int64_t number) const;

 private:
  struct Seen {
    std::vector<std::optional<double>> parts{};  // of each parameter, where the trial has it
    std::vector<double> scores{};
  };
  std::vector<std::int64_t> best(std::size_t count, std::int64_t number) const;

  std::vector<Parameter> params_;
  std::uint64_t seed_;
  std::map<std::int64_t, Seen> seen_;                    // by number
  std::set<std::pair<double, std::int64_t>> by_score_;   // of the first goal, the best first
  std::set<std::vector<std::optional<double>>> points_;  // that were tried
};

/// A point by chance alone, for the first trials: of a Sobol sequence.
Values scattered(const std::vector<Parameter>& params, std::int64_t number, std::uint64_t seed);

}  // namespace berth::experiment
