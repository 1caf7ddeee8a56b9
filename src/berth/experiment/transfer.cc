#include "berth/experiment/transfer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "berth/experiment/space.h"

namespace berth::experiment {
namespace {

std::string budget_of(const Program& program, const Values& params) {
  const auto& budget = program.search.budget;
  const auto* amount = budget ? find_value(params, budget->parameter) : nullptr;
  return amount ? *amount : "";
}

/// From this many trials of the present run on they tell whether another one misleads; more than
/// the most tell nothing more.
constexpr std::size_t kTelling = 8, kMostTelling = 256;

/// The square of the distance of two points, whose coordinates are 0 to 1 each.
double distance(const std::vector<Parameter>& params, const Parts& one, const Parts& other) {
  double sum = 0;
  for (std::size_t at = 0; at < params.size(); ++at)
    if (one[at] != other[at])
      sum += params[at].choices.empty() && one[at] && other[at]
                 ? (*one[at] - *other[at]) * (*one[at] - *other[at])
                 : 1;
  return sum;
}

}  // namespace

// Each run is standardised by itself (Yogatama and Mann, 2014, "Efficient transfer learning method
// for automatic hyperparameter tuning"), but from its best score, not from its mean: a run that
// learns from others tries little but good points, and its mean is that of no sample of the space.
// So the best of every run is worth the same, and none hides what is found now.
Transfer::Scale Transfer::scale_of(const std::vector<Scores>& scores) {
  const std::size_t goals = scores.empty() ? 0 : scores.front().size();
  Scale scale{Scores(goals, 0), Scores(goals, 1)};
  for (std::size_t goal = 0; goal < goals; ++goal) {
    double best = -HUGE_VAL, mean = 0, square = 0;
    const auto count = static_cast<double>(scores.size());
    for (const auto& each : scores) {
      best = std::max(best, each[goal]);
      mean += each[goal] / count;
    }
    for (const auto& each : scores) square += (each[goal] - mean) * (each[goal] - mean) / count;
    scale.best[goal] = best;
    if (square > 0) scale.deviation[goal] = std::sqrt(square);
  }
  return scale;
}

Transfer::Transfer(const Program& program, Make make) : program_(program), make_(make) {
  for (const auto& [params, metrics, run] : program_.earlier) {
    auto report = report_of(program_, 0, {"", params}, TrialReport::State::done, metrics);
    if (!report.scores.empty())
      earlier_[{run, budget_of(program_, params)}].push_back(
          {params, parts_of(program_.params, params), std::move(report.scores),
           std::move(report.excesses)});
  }
  for (auto& [group, trials] : earlier_) {
    std::vector<Scores> scores;
    for (const auto& trial : trials) scores.push_back(trial.measured);
    const Scale scale = scale_of(scores);
    for (auto& trial : trials)
      for (std::size_t goal = 0; goal < trial.measured.size(); ++goal)
        trial.measured[goal] = (trial.measured[goal] - scale.best[goal]) / scale.deviation[goal];
  }
  begin();
}

/// The first 1, 2, 4, 8, … trials that have a score: by every one more the proposer would have to
/// begin anew.
std::vector<std::int64_t> Transfer::first_told(const std::string& budget) const {
  std::vector<std::int64_t> numbers;
  const auto found = present_.find(budget);
  if (found == present_.end()) return numbers;
  const auto first = std::bit_floor(found->second.size());
  for (const auto& [number, scores] : found->second)
    if (numbers.size() < first) numbers.push_back(number);
  return numbers;
}

Transfer::Scale Transfer::present_scale(const std::string& budget) const {
  std::vector<Scores> scores;
  for (const auto number : first_told(budget)) scores.push_back(told_.at(number).scores);
  return scale_of(scores);
}

/// Whether what the present run finds contradicts it: of two points of the present run, the one
/// beside a better point of the earlier run is more often the worse one. Ranks tell what of another
/// run can be believed (Feurer et al., 2018, "Scalable meta-learning for Bayesian optimization").
bool Transfer::misleads(const Group& group) const {
  auto first = first_told(group.second);
  if (first.size() < kTelling) return false;
  first.resize(std::min(first.size(), kMostTelling));
  const auto& trials = earlier_.at(group);
  std::vector<std::pair<double, double>> pairs;  // of the nearest earlier point, and of the point
  for (const auto number : first) {
    const Parts point = parts_of(program_.params, told_.at(number).trial.params);
    const auto nearest = std::ranges::min_element(trials, {}, [&](const Earlier& trial) {
      return distance(program_.params, point, trial.parts);
    });
    pairs.emplace_back(nearest->measured.front(), told_.at(number).scores.front());
  }
  std::int64_t agree = 0;
  for (const auto& [there, here] : pairs)
    for (const auto& [other_there, other_here] : pairs)
      if (there > other_there) agree += (here > other_here) - (here < other_here);
  return agree < 0;
}

/// Tells a new proposer everything, on the scales of now.
void Transfer::begin() {
  Program alone = program_;
  alone.earlier.clear();
  proposer_ = make_(alone);
  std::int64_t number = 0;
  for (const auto& [group, trials] : earlier_) {
    if (misleads(group)) continue;
    const Scale scale = present_scale(group.second);
    for (const auto& trial : trials) {
      Scores scores = trial.measured;
      for (std::size_t goal = 0; goal < scale.best.size(); ++goal)
        scores[goal] = scale.best[goal] + scores[goal] * scale.deviation[goal];
      proposer_->tell({.number = number--,
                       .trial = {"", trial.params},
                       .state = TrialReport::State::done,
                       .scores = std::move(scores),
                       .excesses = trial.excesses});
    }
  }
  for (const auto& [each, report] : told_) proposer_->tell(report);
}

void Transfer::tell(const TrialReport& trial) {
  auto& told = told_[trial.number];
  if (told.number != 0 && told.state != TrialReport::State::open) return;
  told = trial;
  if (!trial.scores.empty()) {
    const std::string budget = budget_of(program_, trial.trial.params);
    present_[budget].emplace(trial.number, trial.scores);
    if (auto first = first_told(budget); first_[budget] != first) {
      first_[budget] = std::move(first);
      return begin();
    }
  }
  proposer_->tell(trial);
}

std::optional<Proposal> Transfer::ask() const {
  return proposer_->ask();
}

}  // namespace berth::experiment
