// The proposer says which trial comes next where that depends on how earlier trials went. It
// follows the ask-and-tell interface and depends on nothing but what it was told: the same trials,
// told in any order, give the same answer. A resumed run therefore tells it what is recorded, and
// nothing else is kept. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/experiment/program.h"

namespace berth::experiment {

struct Proposal {
  std::string label;  // "17"; "17@9" where the budget of trial 17 is 9
  Values params;
};

/// A proposal and its state.
struct TrialReport {
  enum class State : std::uint8_t { open, done, failed };
  static constexpr auto kStateNames =
      names<State>({{State::open, "open"}, {State::done, "done"}, {State::failed, "failed"}});
  std::int64_t number = 0;  // 1, 2, … in the order of proposals
  Proposal trial;
  State state = State::open;
  std::vector<double> scores{};    // one for each goal, greater is better; empty unless done
  std::vector<double> excesses{};  // one for each constraint (constraint.h), where it has scores
};

/// How far a trial is beyond all bounds together; 0: it is feasible.
double violation(const std::vector<double>& excesses);

class Proposer {
 public:
  virtual ~Proposer() = default;

  /// Reports a trial that is to run, and later the same trial with its end.
  virtual void tell(const TrialReport& trial) = 0;
  /// The next trial, which the caller then tells as open; nullopt: none until an open trial has
  /// ended, or none ever.
  virtual std::optional<Proposal> ask() const = 0;
  /// Returns what users should know of the search since the last call.
  virtual std::vector<std::string> take_notes() { return {}; }
};

/// Makes the proposer of a program whose search is adaptive(). It knows the program's earlier
/// trials.
std::unique_ptr<Proposer> make_proposer(const Program& program);

/// The scores of all goals, greater is better; empty if one, or the metric of a constraint, was not
/// reported.
std::vector<double> scores_of(const Program& program, const Numbers& metrics);
/// What a proposer is told of a trial that came to these metrics.
TrialReport report_of(const Program& program, std::int64_t number, Proposal trial,
                      TrialReport::State state, const Numbers& metrics);

}  // namespace berth::experiment
