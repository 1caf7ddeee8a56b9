#include "berth/experiment/proposer.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "berth/experiment/automatic.h"
#include "berth/experiment/constraint.h"
#include "berth/experiment/halving.h"
#include "berth/experiment/population.h"
#include "berth/experiment/space.h"
#include "berth/experiment/transfer.h"

namespace berth::experiment {
namespace {

constexpr std::size_t kMostListed = 10'000;  // points of a space that is known to have an end

/// A space that becomes known as trials run may have more points than are known.
bool has_end(const Program& program) {
  return !program.params.empty() && program.optional.empty();
}

/// So many points of a sampler. Of a space with an end each is tried once, and then it is over.
class Drawn final : public Proposer {
 public:
  Drawn(std::unique_ptr<Sampler> sampler, const Program& program)
      : sampler_(std::move(sampler)),
        params_(program.params),
        samples_(program.search.samples),
        all_(has_end(program) ? all_points(program.params, kMostListed) : std::vector<Values>()) {}

  void tell(const TrialReport& trial) override {
    sampler_->tell(trial);
    last_ = std::max(last_, trial.number);
    // What an earlier run tried may come to something else here.
    if (!all_.empty() && trial.number > 0) tried_.insert(parts_of(params_, trial.trial.params));
  }

  std::optional<Proposal> ask() const override {
    if (last_ >= samples_ || (!all_.empty() && tried_.size() >= all_.size())) return std::nullopt;
    Values point = sampler_->propose(last_ + 1);
    if (!all_.empty()) point = untried(std::move(point));
    return Proposal{fmt::format("{}", last_ + 1), std::move(point)};
  }

 private:
  /// The point, or the nearest one that was not tried.
  Values untried(Values point) const {
    const Parts parts = parts_of(params_, point);
    if (!tried_.contains(parts)) return point;
    double least = HUGE_VAL;
    for (const auto& each : all_) {
      const Parts other = parts_of(params_, each);
      if (tried_.contains(other)) continue;
      double distance = 0;
      for (std::size_t at = 0; at < parts.size(); ++at)
        if (parts[at] != other[at])
          distance += params_[at].choices.empty() && parts[at] && other[at]
                          ? std::abs(*parts[at] - *other[at])
                          : 1;
      if (distance >= least) continue;
      least = distance;
      point = each;
    }
    return point;
  }

  const std::unique_ptr<Sampler> sampler_;
  const std::vector<Parameter> params_;
  const std::int64_t samples_;
  const std::vector<Values> all_;  // empty: too many, or without end
  std::set<Parts> tried_;          // of these
  std::int64_t last_ = 0;          // number
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
