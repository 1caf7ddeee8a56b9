// Early stopping: which running trial is not worth its end, judged by what it and the others have
// reported so far. A step is one report of the goal's metric. Pure.
//
// Two trials are never stopped: the one that is the best of all at its step, and the last one that
// runs as long as no trial has completed.
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
  /// `goal` names the metric that the policy looks at; Goal::score does not matter here.
  EarlyStopper(EarlyStop policy, Goal goal) : policy_(policy), goal_(std::move(goal)) {}

  /// Begins an attempt of the trial. The reports of earlier attempts are dropped.
  void begin(std::int64_t trial);
  /// Takes the trial's next report. The result is the reason to stop the trial, if there is one.
  std::optional<std::string> report(std::int64_t trial, double value);
  /// Returns true if reports that followed the one with a reason to stop the trial make it worth
  /// its end after all.
  bool has_recovered(std::int64_t trial) const;
  /// `completed`: it ended by itself, and well. The steps of a trial that was stopped early still
  /// count in comparisons; those of a failed trial do not.
  enum class End : std::uint8_t { completed, stopped_early, failed };
  void end(std::int64_t trial, End end);

 private:
  // Greater is better, whatever the goal's direction.
  struct Step {
    double value = 0, best = 0, mean = 0;  // best and mean of all steps so far
  };
  using Steps = std::vector<Step>;
  using Others = std::vector<const Steps*>;

  Others others_at(std::int64_t trial, std::size_t step) const;
  std::optional<std::string> judge(const Steps& own, const Others& others) const;
  std::optional<std::string> by_median(const Steps& own, const Others& others) const;
  std::optional<std::string> by_slack(const Steps& own, const Others& others) const;
  std::optional<std::string> by_curve(const Steps& own, const Others& others) const;
  std::optional<std::string> by_rank(const Steps& own, const Others& others) const;
  std::string text(double value) const;

  EarlyStop policy_;
  Goal goal_;
  std::unordered_map<std::int64_t, Steps> steps_;  // by trial
  std::set<std::int64_t> running_;
  std::size_t completed_ = 0;
  std::size_t longest_ = 0;  // the most steps of a completed trial
};

}  // namespace berth::experiment
