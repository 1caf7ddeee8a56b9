#include "berth/experiment/proposer.h"

#include <algorithm>

#include "berth/experiment/automatic.h"
#include "berth/experiment/halving.h"

namespace berth::experiment {
namespace {

/// So many points of a sampler.
class Drawn final : public Proposer {
 public:
  Drawn(std::unique_ptr<Sampler> sampler, std::int64_t samples)
      : sampler_(std::move(sampler)), samples_(samples) {}

  void tell(const TrialReport& trial) override {
    sampler_->tell(trial);
    last_ = std::max(last_, trial.number);
  }

  std::optional<Proposal> ask() const override {
    if (last_ >= samples_) return std::nullopt;
    return Proposal{fmt::format("{}", last_ + 1), sampler_->propose(last_ + 1)};
  }

 private:
  const std::unique_ptr<Sampler> sampler_;
  const std::int64_t samples_;
  std::int64_t last_ = 0;  // number
};

}  // namespace

bool adaptive(const Search& search) {
  switch (search.method) {
    case Search::Method::tpe:
    case Search::Method::cma_es:
    case Search::Method::gp:
    case Search::Method::automatic:
    case Search::Method::halving:
    case Search::Method::hyperband:
    case Search::Method::external: return true;
    default: return false;
  }
}

std::unique_ptr<Proposer> make_proposer(const Program& program) {
  if (auto sampler = make_sampler(program))
    return std::make_unique<Drawn>(std::move(sampler), program.search.samples);
  return std::make_unique<Halving>(program);
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
  if (!program.goal || !add(*program.goal) || !std::ranges::all_of(program.further_goals, add))
    scores.clear();
  return scores;
}

}  // namespace berth::experiment
