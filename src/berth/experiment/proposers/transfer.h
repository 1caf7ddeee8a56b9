// A warm start: a proposer that first measures a few good points of earlier runs again and then
// continues exactly as the same search without them. So after n trials it is no worse than that
// search after n - kRemeasured trials, if equal points have equal scores. Like every proposer it
// is a function of the trials that it was told. Pure.
#pragma once

#include <map>
#include <memory>

#include "berth/experiment/proposers/proposer.h"

namespace berth::experiment {

/// The number of points of earlier runs that are measured again.
inline constexpr std::size_t kRemeasured = 3;

/// The trial of another run as a point of this program's space, with its budget. Values of removed
/// parameters are dropped; an added parameter has its first choice or the middle of its range, a
/// fixed one its value. nullopt: a value lies outside this space, no searched parameter is common
/// to both, or a goal has no score.
std::optional<Values> adapted(const Program& program, const Values& values, const Numbers& metrics);

/// The earlier trials whose points are measured again, at most kRemeasured: the best one, then the
/// next best ones that differ from those chosen by another choice or 5 % of a range. If there are
/// too few of these, the next best points. Runs give one trial each in turn. Trials with a higher
/// budget count as better ones.
std::vector<EarlierTrial> good_trials(const Program& program);

class Transfer final : public Proposer {
 public:
  /// `make` makes the search of a program without earlier trials.
  using Make = std::unique_ptr<Proposer> (*)(const Program& program);
  Transfer(const Program& program, Make make);

  void tell(const TrialReport& trial) override;
  std::optional<Proposal> ask() const override;
  std::vector<std::string> take_notes() override;

 private:
  void begin();
  void tell_search(const TrialReport& trial);
  std::int64_t measured_before(std::int64_t number) const;
  bool exhausted(const Values& proposed) const;
  void compare(const TrialReport& trial);

  const Program program_;  // its earlier trials are those that are measured again
  const Make make_;
  std::vector<std::string> notes_{};
  std::vector<std::int64_t> measured_;             // by earlier trial: its number here; 0: none
  std::map<std::int64_t, TrialReport> reports_{};  // by number, the latest of each trial
  std::unique_ptr<Proposer> search_;
};

}  // namespace berth::experiment
