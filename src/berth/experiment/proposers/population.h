// Population based training (PBT; Jaderberg et al., 2017): all trials train side by side, a part of
// the budget at a time. After each part the worst fifth of them go on from the checkpoints of the
// best fifth, with other values of the parameters that are explored. A trial and its budget make a
// label, "3@20"; its parameter `parent` is the label whose checkpoint it goes on from.
//
// What comes of it does not depend on how many trials run at once or which ends first: whoever is
// sure to be none of the worst goes on at once, and the others wait until their generation has
// ended. Pure.
#pragma once

#include <map>

#include "berth/experiment/proposers/proposer.h"

namespace berth::experiment {

/// The parameter that names the trial from whose checkpoint another one goes on.
inline constexpr std::string_view kParent = "parent";

/// The trial, from 1, and the place of its budget among levels(), from 0.
struct Member {
  std::int64_t trial = 0;
  std::size_t level = 0;
  auto operator<=>(const Member&) const = default;
};
/// nullopt: the label is none of such a search.
std::optional<Member> member_of(const Budget& budget, std::string_view label);
std::string label_of(const Budget& budget, Member member);

/// The ranges of floats, which a checkpoint does not depend on as it does on a width or a kind.
std::vector<std::string> explored_by_default(const std::vector<Parameter>& params);

class Population final : public Proposer {
 public:
  explicit Population(const Program& program);
  void tell(const TrialReport& report) override;
  std::optional<Proposal> ask() const override;

 private:
  struct Standing {
    Values params;  // without budget and parent
    bool over = false;
    double score = 0;  // once it is over; greater is better, that of a failed one below all
  };
  using Generation = std::map<std::int64_t, Standing>;  // by trial

  std::optional<Proposal> successor(std::int64_t trial, std::size_t level) const;
  Proposal proposal(Member member, Values params, const std::string& parent) const;
  Values explored(const Values& from, Member member) const;

  const Program program_;
  const std::size_t samples_, cut_;      // the trials; so many of them are the best, or the worst
  std::vector<Generation> generations_;  // by level
};

}  // namespace berth::experiment
