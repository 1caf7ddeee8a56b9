// Asynchronous successive halving (ASHA; Li et al., 2020): every trial begins with a small budget,
// and whenever one is among the best fraction of those that spent as much, it goes on with more.
// Hyperband (Li et al., 2018) runs brackets of trials that begin at each level. With a model new
// trials are proposed as tpe does, from the highest level with enough trials (BOHB; Falkner et al.,
// 2018). Pure.
#pragma once

#include <map>
#include <set>

#include "berth/experiment/proposers/tpe.h"

namespace berth::experiment {

/// The budgets that a trial may have, rising to the greatest.
std::vector<double> levels(const Budget& budget);
/// Whether all of them are whole numbers.
bool whole(const Budget& budget);
/// The level of a trial's budget; nullopt: another amount, or none.
std::optional<std::size_t> level_of(const Budget& budget, const Values& params);
/// The text of a budget as the value of its parameter.
std::string budget_text(const Budget& budget, double amount);
/// The number of trials in one round of hyperband's brackets.
std::int64_t hyperband_round(const Budget& budget);
/// The number of trials in so many of hyperband's brackets, which come round and round.
std::int64_t hyperband_samples(const Budget& budget, std::int64_t brackets);

class Halving final : public Proposer {
 public:
  explicit Halving(const Program& program);
  void tell(const TrialReport& report) override;
  std::optional<Proposal> ask() const override;

 private:
  /// The trials of one bracket that have spent one level.
  struct Rung {
    using ByScore = std::set<std::pair<double, std::int64_t>>;  // the best first, failed ones last
    ByScore ended;
    ByScore waiting;  // of these, the ones without a next level
    std::int64_t gone_on = 0;
  };

  std::size_t bracket(std::int64_t trial) const;
  std::optional<std::int64_t> promotable(const Rung& rung) const;
  Proposal proposal(std::int64_t trial, const Values& params, std::size_t level) const;
  Values drawn(std::int64_t trial) const;
  Values fresh(std::int64_t trial) const;

  const Program program_;
  const std::vector<double> levels_;
  std::vector<std::size_t> brackets_;  // the level at which each trial of a round begins
  std::int64_t samples_ = 0;           // the number of trials
  const bool discrete_;
  std::set<Parts> points_;                 // of all trials, in a discrete space
  std::map<std::int64_t, Values> trials_;  // without their budget
  std::vector<std::vector<Rung>> rungs_;  // by the level at which the bracket begins, then by level
  std::vector<Model> models_;             // by level
  std::set<std::string> open_;
  std::set<std::pair<std::int64_t, std::size_t>>
      begun_;  // trials and the levels that they were given
};

}  // namespace berth::experiment
