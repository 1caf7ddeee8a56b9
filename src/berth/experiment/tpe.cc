#include "berth/experiment/tpe.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "berth/experiment/space.h"

namespace berth::experiment {
namespace {

constexpr std::size_t kFirst = 10;      // quasi-random trials before the model proposes
constexpr double kGoodPart = 0.2;       // the fraction of the scored trials that counts as good
constexpr std::size_t kMostGood = 25;   // the most good trials
constexpr std::size_t kMostRest = 200;  // the most other trials: the latest ones
// With more trials than kWide the kernels narrow by this power of how many times as many: slow
// enough to look around first, fast enough to come near in a thousand (bench/search.py).
constexpr double kWide = 60, kNarrowing = 1.5;
constexpr int kCandidates = 48;
constexpr double kPriorWeight = 1;  // weight of the uniform prior, in trials

double normal_cdf(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

/// A Gaussian kernel on the line from 0 to 1, truncated at its ends.
struct Kernel {
  double center, width, scale;  // normalises its density
  Kernel(double at, double sigma) : center(at), width(sigma) {
    const double whole = normal_cdf((1 - at) / sigma) - normal_cdf(-at / sigma);
    scale = 1 / (sigma * std::sqrt(2 * std::numbers::pi) * whole);
  }
  double density(double x) const {
    const double distance = (x - center) / width;
    return scale * std::exp(-0.5 * distance * distance);
  }
  double draw(Rng& rng) const {
    for (int i = 0; i < 64; ++i) {
      const double x = center + width * normal(rng);
      if (x >= 0 && x <= 1) return x;
    }
    return rng.uniform();
  }
};

/// The density of some trials over the whole space: a kernel around each trial, for choices a
/// preference for its choice, and a uniform prior.
class Density {
 public:
  Density(const std::vector<Parameter>& params, const std::vector<const Parts*>& trials,
          std::size_t known)
      : params_(params), trials_(trials), kernels_(params.size()) {
    const auto count = static_cast<double>(trials.size());
    const double shrink =
        std::pow(count, -1 / (4.0 + static_cast<double>(params.size()))) *
        std::min(1.0, std::pow(kWide / std::max(1.0, static_cast<double>(known)), kNarrowing));
    repeat_probability_ = count / (count + kPriorTrials);
    for (std::size_t at = 0; at < params.size(); ++at)
      if (params[at].choices.empty()) place_kernels(at, shrink);
  }

  double at(const Parts& point) const {
    double sum = kPriorWeight * uniform_density(point);
    for (std::size_t trial = 0; trial < trials_.size(); ++trial) {
      double product = 1;
      for (std::size_t at = 0; at < params_.size(); ++at)
        if (point[at]) product *= factor(trial, at, *point[at]);
      sum += product;
    }
    return sum / (static_cast<double>(trials_.size()) + kPriorWeight);
  }

  Values draw(Rng& rng) const {
    const double all = static_cast<double>(trials_.size()) + kPriorWeight;
    const auto trial = static_cast<std::size_t>(rng.uniform() * all);
    Values values;
    for (std::size_t at = 0; at < params_.size(); ++at) {
      const Parameter& parameter = params_[at];
      if (!present(parameter, values)) continue;
      const bool near = trial < trials_.size() && (*trials_[trial])[at].has_value();
      values.emplace_back(parameter.name,
                          near ? draw_around(trial, at, rng) : value_at(parameter, rng.uniform()));
    }
    return values;
  }

 private:
  static constexpr double kPriorTrials =
      3;  // trials whose weight equals that of the prior, for choices
  static constexpr double kWidth = 0.08, kWidest = 0.35;

  /// The width depends on how many trials are known, not on how far they are apart: if it did, they
  /// would draw together ever more.
  void place_kernels(std::size_t at, double shrink) {
    const Parameter& parameter = params_[at];
    const double step = parameter.integer && parameter.step == 0
                            ? 0.5 / (parameter.max - parameter.min + 1)
                            : share(parameter, 0.5) / 2;
    const double width = std::clamp(kWidth * shrink, std::min(step, kWidest), kWidest);
    for (const auto* trial : trials_) kernels_[at].emplace_back((*trial)[at].value_or(0.5), width);
  }

  double uniform_density(const Parts& point) const {
    double product = 1;
    for (std::size_t at = 0; at < params_.size(); ++at)
      if (point[at] && !params_[at].choices.empty())
        product /= static_cast<double>(params_[at].choices.size());
    return product;
  }

  double factor(std::size_t trial, std::size_t at, double part) const {
    const auto& own = (*trials_[trial])[at];
    const auto& choices = params_[at].choices;
    if (choices.empty()) return own ? kernels_[at][trial].density(part) : 1;
    const double any = 1 / static_cast<double>(choices.size());
    if (!own) return any;
    return (1 - repeat_probability_) * any + (*own == part ? repeat_probability_ : 0);
  }

  std::string draw_around(std::size_t trial, std::size_t at, Rng& rng) const {
    const Parameter& parameter = params_[at];
    if (parameter.choices.empty()) return value_at(parameter, kernels_[at][trial].draw(rng));
    const bool same = rng.uniform() < repeat_probability_;
    return value_at(parameter, same ? *(*trials_[trial])[at] : rng.uniform());
  }

  const std::vector<Parameter>& params_;
  const std::vector<const Parts*> trials_;
  std::vector<std::vector<Kernel>> kernels_;  // by parameter that is a range, then by trial
  double repeat_probability_ = 0;             // of drawing the same choice again
};

}  // namespace

Model::Model(std::vector<Parameter> params, std::uint64_t seed)
    : params_(std::move(params)), seed_(seed) {}

void Model::tell(const TrialReport& trial) {
  Seen& seen = seen_[trial.number];
  seen.parts = parts_of(params_, trial.trial.params);
  points_.insert(seen.parts);
  if (trial.scores.empty() || !seen.scores.empty()) return;
  seen.scores = trial.scores;
  by_score_.emplace(-trial.scores.front(), trial.number);
}

/// The numbers of the best trials. With several goals each proposal draws random weights for them,
/// so that many proposals search around the whole Pareto front.
std::vector<std::int64_t> Model::best(std::size_t count, std::int64_t number) const {
  std::vector<std::int64_t> numbers;
  const auto scored = by_score_.begin();
  if (by_score_.empty()) return numbers;
  const std::size_t goals = seen_.at(scored->second).scores.size();
  if (goals == 1) {
    for (auto at = scored; numbers.size() < count; ++at) numbers.push_back(at->second);
    return numbers;
  }
  std::vector<double> least(goals, HUGE_VAL), most(goals, -HUGE_VAL), weights(goals);
  for (const auto& [score, trial] : by_score_) {
    const auto& scores = seen_.at(trial).scores;
    for (std::size_t goal = 0; goal < goals; ++goal) {
      least[goal] = std::min(least[goal], scores[goal]);
      most[goal] = std::max(most[goal], scores[goal]);
    }
  }
  Rng rng(mix(seed_ + 1) ^ mix(static_cast<std::uint64_t>(number)));
  for (auto& weight : weights) weight = -std::log(1 - rng.uniform());
  std::vector<std::pair<double, std::int64_t>>
      far;  // the greatest weighted distance from the best of a goal
  for (const auto& [score, trial] : by_score_) {
    const auto& scores = seen_.at(trial).scores;
    double worst = 0;
    for (std::size_t goal = 0; goal < goals; ++goal) {
      const double range = most[goal] - least[goal];
      if (range > 0) worst = std::max(worst, weights[goal] * (most[goal] - scores[goal]) / range);
    }
    far.emplace_back(worst, trial);
  }
  std::ranges::partial_sort(far, far.begin() + static_cast<std::ptrdiff_t>(count));
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(far[i].second);
  return numbers;
}

Values Model::propose(std::int64_t number) const {
  if (by_score_.size() < kFirst) return quasi_random(params_, number, seed_);
  const auto good_count = std::min(
      kMostGood,
      static_cast<std::size_t>(std::ceil(kGoodPart * static_cast<double>(by_score_.size()))));
  auto numbers = best(good_count, number);
  std::vector<const Parts*> good, rest;
  for (const auto trial : numbers) good.push_back(&seen_.at(trial).parts);
  std::ranges::sort(numbers);
  for (auto seen = seen_.rbegin(); seen != seen_.rend() && rest.size() < kMostRest; ++seen)
    if (!std::ranges::binary_search(numbers, seen->first)) rest.push_back(&seen->second.parts);
  const Density here(params_, good, known()), elsewhere(params_, rest, known());
  Rng rng(mix(seed_) ^ mix(static_cast<std::uint64_t>(number)));
  Values chosen;
  double most = -1;
  bool fresh = false;
  for (int candidate = 0; candidate < kCandidates; ++candidate) {
    Values values = here.draw(rng);
    const Parts parts = parts_of(params_, values);
    const double worth = here.at(parts) / elsewhere.at(parts);
    const bool is_new = !points_.contains(parts);
    if (std::pair(is_new, worth) <= std::pair(fresh, most)) continue;
    chosen = std::move(values);
    most = worth;
    fresh = is_new;
  }
  return chosen;
}

}  // namespace berth::experiment
