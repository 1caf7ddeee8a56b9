// A proposer of a search that begins with trials of earlier runs, whose scores are on scales of
// their own: other data, another loss, a longer training. It tells the search all of them on the
// scale of the present run. Like every proposer it is a function of what it was told. Pure.
#pragma once

#include <map>
#include <memory>

#include "berth/experiment/sampler.h"

namespace berth::experiment {

class Transfer final : public Proposer {
 public:
  /// Asks proposers that `make` makes of the program; each hears of the program's earlier trials.
  using Make = std::unique_ptr<Proposer> (*)(const Program& program);
  Transfer(const Program& program, Make make);

  void tell(const TrialReport& trial) override;
  std::optional<Proposal> ask() const override;

 private:
  using Scores = std::vector<double>;  // one for each goal
  /// What some scores are measured by: the best of them, and how far they lie apart.
  struct Scale {
    Scores best{}, deviation{};
  };
  static Scale scale_of(const std::vector<Scores>& scores);
  Scale present_scale(const std::string& budget) const;
  std::vector<std::int64_t> first_told(const std::string& budget) const;
  using Group = std::pair<std::string, std::string>;  // a run and a budget
  bool misleads(const Group& group) const;
  void begin();

  const Program program_;
  const Make make_;
  struct Earlier {
    Values params;
    Parts parts;
    Scores measured;  // deviations from the best of its group
    std::vector<double> excesses;
  };
  std::map<Group, std::vector<Earlier>> earlier_;  // those of one group share a scale
  std::map<std::int64_t, TrialReport> told_;       // by number, as told last
  std::map<std::string, std::map<std::int64_t, Scores>> present_;  // by budget, then by number
  std::map<std::string, std::vector<std::int64_t>> first_;  // by budget: first_told() as used
  std::unique_ptr<Proposer> proposer_;
};

}  // namespace berth::experiment
