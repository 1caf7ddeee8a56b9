// Who says which trial comes next where that depends on how the earlier ones went. A proposer has
// nothing but what it was told: the same trials, told in any order, get the same answer. So a run
// that goes on tells it what is recorded, and nothing else need be kept. Pure.
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

/// A proposal and what became of it.
struct Told {
  enum class State : std::uint8_t { open, done, failed };
  static constexpr auto kStateNames =
      names<State>({{State::open, "open"}, {State::done, "done"}, {State::failed, "failed"}});
  std::int64_t number = 0;  // 1, 2, … as they were proposed; 0 and below: of earlier runs
  Proposal trial;
  State state = State::open;
  std::vector<double> scores{};  // one for each goal, greater is better; empty where not done
};

class Proposer {
 public:
  virtual ~Proposer() = default;

  /// A trial that is to run, and later again how it ended.
  virtual void tell(const Told& trial) = 0;
  /// What to try next; nullopt: nothing before something open has ended, or nothing ever. The
  /// caller tells it as open.
  virtual std::optional<Proposal> ask() const = 0;
};

/// Of a program whose search is adaptive().
std::unique_ptr<Proposer> make_proposer(const Program& program);

/// Of each goal, greater being better; empty where one was not reported.
std::vector<double> scores_of(const Program& program, const Numbers& metrics);

}  // namespace berth::experiment
