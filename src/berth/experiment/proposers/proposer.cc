#include "berth/experiment/proposers/proposer.h"

#include <algorithm>
#include <set>

#include "berth/experiment/constraint.h"
#include "berth/experiment/proposers/automatic.h"
#include "berth/experiment/proposers/halving.h"
#include "berth/experiment/proposers/population.h"
#include "berth/experiment/proposers/transfer.h"
#include "berth/experiment/proposers/untried.h"

namespace berth::experiment {
namespace {

/// The points of a sampler, up to the number of samples. Each point of a discrete space is tried
/// once, and then the search is over.
class Drawn final : public Proposer {
 public:
  Drawn(std::unique_ptr<Sampler> sampler, const Program& program)
      : sampler_(std::move(sampler)),
        params_(program.params),
        samples_(program.search.samples),
        discrete_(has_end(program)) {}

  void tell(const TrialReport& trial) override {
    sampler_->tell(trial);
    last_ = std::max(last_, trial.number);
    if (discrete_) tried_.insert(parts_of(params_, trial.trial.params));
  }

  std::optional<Proposal> ask() const override {
    if (last_ >= samples_) return std::nullopt;
    std::optional<Values> point = sampler_->propose(last_ + 1);
    if (discrete_) point = nearest_untried(params_, std::move(*point), tried_);
    if (!point) return std::nullopt;
    return Proposal{fmt::format("{}", last_ + 1), std::move(*point)};
  }

 private:
  const std::unique_ptr<Sampler> sampler_;
  const std::vector<Parameter> params_;
  const std::int64_t samples_;
  const bool discrete_;
  std::set<Parts> tried_;  // of a discrete space
  std::int64_t last_ = 0;  // number
};

/// Halving and pbt compare scores: that of an infeasible trial is below all others, by what it
/// breaks.
class FeasibleFirst final : public Proposer {
 public:
  explicit FeasibleFirst(std::unique_ptr<Proposer> proposer) : proposer_(std::move(proposer)) {}
  void tell(const TrialReport& trial) override {
    TrialReport told = trial;
    const double broken = violation(trial.excesses);
    if (broken > 0 && !told.scores.empty()) told.scores[0] = -1e300 * (1 + broken / (1 + broken));
    proposer_->tell(told);
  }
  std::optional<Proposal> ask() const override { return proposer_->ask(); }

 private:
  const std::unique_ptr<Proposer> proposer_;
};

}  // namespace

bool adaptive(const Search& search) {
  switch (search.method) {
    case Search::Method::tpe:
    case Search::Method::cma_es:
    case Search::Method::gp:
    case Search::Method::automatic:
    case Search::Method::nsga2:
    case Search::Method::halving:
    case Search::Method::hyperband:
    case Search::Method::pbt:
    case Search::Method::external: return true;
    default: return false;
  }
}

bool has_budget(Search::Method method) {
  return method == Search::Method::halving || method == Search::Method::hyperband ||
         method == Search::Method::pbt;
}

std::unique_ptr<Proposer> make_proposer(const Program& program) {
  if (!program.earlier.empty()) return std::make_unique<Transfer>(program, make_proposer);
  if (auto sampler = make_sampler(program))
    return std::make_unique<Drawn>(std::move(sampler), program);
  std::unique_ptr<Proposer> proposer;
  if (program.search.method == Search::Method::pbt)
    proposer = std::make_unique<Population>(program);
  else
    proposer = std::make_unique<Halving>(program);
  if (program.constraints.empty()) return proposer;
  return std::make_unique<FeasibleFirst>(std::move(proposer));
}

std::string score_name(const Goal& goal) {
  return goal.score == Goal::Score::best ? goal.metric + ".best" : goal.metric;
}

std::optional<double> score(const Goal& goal, const Numbers& metrics) {
  const auto found = std::ranges::find(metrics, score_name(goal), &Numbers::value_type::first);
  return found == metrics.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> better_score(const Goal& goal, const Numbers& metrics, double reported) {
  if (goal.score != Goal::Score::best) return std::nullopt;
  const auto before = score(goal, metrics);
  const bool better = !before || (goal.maximize ? reported > *before : reported < *before);
  return better ? std::optional(reported) : std::nullopt;
}

std::vector<double> scores_of(const Program& program, const Numbers& metrics) {
  std::vector<double> scores;
  const auto add = [&](const Goal& goal) {
    const auto value = score(goal, metrics);
    if (value) scores.push_back(goal.maximize ? *value : -*value);
    return value.has_value();
  };
  if (!program.goal || !add(*program.goal) || !std::ranges::all_of(program.further_goals, add) ||
      !std::ranges::all_of(program.constraints,
                           [&](const auto& each) { return excess(each, metrics).has_value(); }))
    scores.clear();
  return scores;
}

double violation(const std::vector<double>& excesses) {
  double sum = 0;
  for (const double each : excesses) sum += std::max(0.0, each);
  return sum;
}

TrialReport report_of(const Program& program, std::int64_t number, Proposal trial,
                      TrialReport::State state, const Numbers& metrics) {
  TrialReport report{.number = number, .trial = std::move(trial), .state = state};
  if (state != TrialReport::State::done) return report;
  report.scores = scores_of(program, metrics);
  for (const auto& each : program.constraints)
    if (!report.scores.empty()) report.excesses.push_back(*excess(each, metrics));
  return report;
}

}  // namespace berth::experiment
