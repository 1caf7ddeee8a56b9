// Which running trial is not worth its end, from what it and the others have reported so far. A
// step is one report of the goal's metric. Pure.
//
// Never ended: a trial that is the best of all at its step, and the last one that runs as long as
// none has come to its own end.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "berth/experiment/program.h"

namespace berth::experiment {

class EarlyStopper {
 public:
  /// `goal`: what the policy looks at; its score does not matter here.
  EarlyStopper(EarlyStop policy, Goal goal) : policy_(policy), goal_(std::move(goal)) {}

  /// Another attempt: what earlier ones reported is forgotten.
  void begin(std::int64_t trial);
  /// Its next report: the reason to end it here, if there is one.
  std::optional<std::string> report(std::int64_t trial, double value);
  /// `whole`: by itself, and well. What was cut short still tells how others did at its steps; a
  /// trial that failed tells nothing.
  enum class End : std::uint8_t { whole, cut_short, failed };
  void end(std::int64_t trial, End end);

 private:
  // Greater is better, whatever the goal's direction.
  struct Step {
    double value = 0, best = 0, mean = 0;  // these of all so far
  };
  using Steps = std::vector<Step>;

  std::vector<const Steps*> others_at(std::int64_t trial, std::size_t step) const;
  std::optional<std::string> judge(const Steps& own, const std::vector<const Steps*>& others) const;
  std::optional<std::string> by_median(const Steps& own,
                                       const std::vector<const Steps*>& others) const;
  std::optional<std::string> by_slack(const Steps& own,
                                      const std::vector<const Steps*>& others) const;
  std::optional<std::string> by_curve(const Steps& own,
                                      const std::vector<const Steps*>& others) const;
  std::optional<std::string> by_rank(const Steps& own,
                                     const std::vector<const Steps*>& others) const;
  std::string text(double value) const;

  EarlyStop policy_;
  Goal goal_;
  std::unordered_map<std::int64_t, Steps> steps_;  // of each trial
  std::set<std::int64_t> running_;
  std::size_t whole_ = 0;
  std::size_t longest_ = 0;  // steps of one that came to its own end
};

}  // namespace berth::experiment
