// Successive halving without waiting (ASHA; Li et al., 2020): every trial begins with little of a
// budget, and whenever one is among the best part of those that spent as much, it goes on with
// more. Hyperband (Li et al., 2018) hedges how little to begin with: brackets of trials that begin
// at each level. With a model new trials are drawn as tpe does, from what is known at the highest
// level that tells enough (Falkner et al., 2018). Pure.
#pragma once

#include <map>
#include <set>

#include "berth/experiment/tpe.h"

namespace berth::experiment {

/// The amounts that a trial may be given, rising to the greatest by the factor of the reduction.
std::vector<double> levels(const Budget& budget);
/// Which of them a trial has; nullopt: another amount, or none.
std::optional<std::size_t> level_of(const Budget& budget, const Values& params);
/// As the value of its parameter.
std::string budget_text(const Budget& budget, double amount);
/// How many trials one round of hyperband's brackets has.
std::int64_t hyperband_round(const Budget& budget);

class Halving final : public Proposer {
 public:
  explicit Halving(const Program& program);
  void tell(const Told& trial) override;
  std::optional<Proposal> ask() const override;

 private:
  /// The trials of one bracket that have spent one level.
  struct Rung {
    using ByScore = std::set<std::pair<double, std::int64_t>>;  // the best first, failed ones last
    ByScore ended;
    ByScore waiting;  // of these, not gone on with
  };

  std::size_t bracket(std::int64_t trial) const;
  std::optional<std::int64_t> promotable(const Rung& rung) const;
  Proposal proposal(std::int64_t trial, const Values& params, std::size_t level) const;
  Values fresh(std::int64_t trial) const;

  const Program program_;
  const std::vector<double> levels_;
  std::vector<std::size_t> brackets_;      // at which level each trial of a round begins
  std::int64_t samples_ = 0;               // trials in all
  std::map<std::int64_t, Values> trials_;  // without their budget
  std::vector<std::vector<Rung>> rungs_;   // by the level at which a bracket begins, and its own
  std::vector<Model> models_;              // of each level
  std::set<std::string> open_;
  std::set<std::pair<std::int64_t, std::size_t>> begun_;  // which trial was given which level
};

}  // namespace berth::experiment
