#include "berth/experiment/proposers/tpe.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "berth/experiment/proposers/space.h"

namespace berth::experiment {
namespace {

constexpr std::size_t kFirst = 10;          // quasi-random trials before the model proposes
constexpr std::size_t kMostGood = 25;       // the most good trials
constexpr std::size_t kMostRest = 200;      // the most other trials: the latest ones
constexpr std::size_t kMostRanked = 500;    // under several goals, beside the front: the latest
constexpr std::int64_t kFewSideBySide = 3;  // open trials of a search that goes one by one
constexpr int kCandidates = 48;
constexpr double kPriorWeight = 1;  // weight of the uniform prior, in trials
// With more trials than this the kernels narrow by a power of how many times as many: slow
// enough to look around first, fast enough to come near in a thousand (bench/search.py).
constexpr double kWide = 60;

/// How a density is made of trials.
struct Shape {
  bool joint;        // interactions of parameters count; else it is the product of one for each
  double good_part;  // the fraction of the scored trials that counts as good
  double width, narrowing;
};
constexpr Shape kOneByOne{true, 0.2, 0.08, 1.5};
// Many side by side have few generations to come near in: fewer count as good, and each parameter
// learns from all of them. bench/search.md has what that gains.
constexpr Shape kSideBySide{false, 0.05, 0.1, 1};
// The good ones lie along a whole front, each parameter of which is the same in many of them.
constexpr Shape kSeveralGoals{false, 0.2, 0.08, 0.7};

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
          std::size_t known, const Shape& shape)
      : params_(params), trials_(trials), shape_(shape), kernels_(params.size()) {
    const auto count = static_cast<double>(trials.size());
    const double narrower = kWide / std::max(kWide, static_cast<double>(known));
    const double shrink = std::pow(count, -1 / (4.0 + static_cast<double>(params.size()))) *
                          std::pow(narrower, shape.narrowing);
    repeat_probability_ = count / (count + kPriorTrials);
    for (std::size_t at = 0; at < params.size(); ++at)
      if (params[at].choices.empty()) place_kernels(at, shrink);
  }

  double at(const Parts& point) const {
    return shape_.joint ? joint_at(point) : marginals_at(point);
  }

  Values draw(Rng& rng) const {
    const double all = static_cast<double>(trials_.size()) + kPriorWeight;
    auto trial = static_cast<std::size_t>(rng.uniform() * all);
    Values values;
    for (std::size_t at = 0; at < params_.size(); ++at) {
      const Parameter& parameter = params_[at];
      if (!present(parameter, values)) continue;
      if (!shape_.joint) trial = static_cast<std::size_t>(rng.uniform() * all);
      const bool near = trial < trials_.size() && (*trials_[trial])[at].has_value();
      values.emplace_back(parameter.name,
                          near ? draw_around(trial, at, rng) : value_at(parameter, rng.uniform()));
    }
    return values;
  }

 private:
  static constexpr double kPriorTrials =
      3;  // trials whose weight equals that of the prior, for choices
  static constexpr double kWidest = 0.35;

  double joint_at(const Parts& point) const {
    double sum = kPriorWeight;
    for (std::size_t at = 0; at < params_.size(); ++at)
      if (point[at]) sum *= prior(at);
    for (std::size_t trial = 0; trial < trials_.size(); ++trial) {
      double product = 1;
      for (std::size_t at = 0; at < params_.size(); ++at)
        if (point[at]) product *= factor(trial, at, *point[at]);
      sum += product;
    }
    return sum / (static_cast<double>(trials_.size()) + kPriorWeight);
  }

  double marginals_at(const Parts& point) const {
    double product = 1;
    for (std::size_t at = 0; at < params_.size(); ++at) {
      if (!point[at]) continue;
      double sum = kPriorWeight * prior(at);
      for (std::size_t trial = 0; trial < trials_.size(); ++trial)
        sum += factor(trial, at, *point[at]);
      product *= sum / (static_cast<double>(trials_.size()) + kPriorWeight);
    }
    return product;
  }

  /// The width depends on how many trials are known, not on how far they are apart: if it did, they
  /// would draw together ever more.
  void place_kernels(std::size_t at, double shrink) {
    const Parameter& parameter = params_[at];
    const double step = parameter.integer && parameter.step == 0
                            ? 0.5 / (parameter.max - parameter.min + 1)
                            : share(parameter, 0.5) / 2;
    const double width = std::clamp(shape_.width * shrink, std::min(step, kWidest), kWidest);
    for (const auto* trial : trials_) kernels_[at].emplace_back((*trial)[at].value_or(0.5), width);
  }

  double prior(std::size_t at) const {
    const auto& choices = params_[at].choices;
    return choices.empty() ? 1 : 1 / static_cast<double>(choices.size());
  }

  double factor(std::size_t trial, std::size_t at, double part) const {
    const auto& own = (*trials_[trial])[at];
    const auto& choices = params_[at].choices;
    if (choices.empty()) return own ? kernels_[at][trial].density(part) : 1;
    const double any = prior(at);
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
  const Shape shape_;
  std::vector<std::vector<Kernel>> kernels_;  // by parameter that is a range, then by trial
  double repeat_probability_ = 0;             // of drawing the same choice again
};

}  // namespace

Model::Model(std::vector<Parameter> params, std::uint64_t seed)
    : params_(std::move(params)), seed_(seed) {}

void Model::tell(const TrialReport& trial) {
  Seen& seen = seen_[trial.number];
  const bool ends = trial.state != TrialReport::State::open;
  if (ends && !std::exchange(seen.over, true)) ++over_;
  seen.parts = parts_of(params_, trial.trial.params);
  points_.insert(seen.parts);
  if (trial.scores.empty() || !seen.merit.scores.empty()) return;
  seen.merit = merit_of(trial);
  by_loss_.emplace(std::pair(seen.merit.violation, -trial.scores.front()), trial.number);
  const auto beats = [&](std::int64_t other) {
    return dominates(seen_.at(other).merit, seen.merit);
  };
  if (std::ranges::any_of(front_, beats)) return;
  std::erase_if(front_, [&](auto other) { return dominates(seen.merit, seen_.at(other).merit); });
  front_.push_back(trial.number);
}

/// The numbers of the best trials: by front, and of the last front the least crowded.
std::vector<std::int64_t> Model::best(std::size_t count) const {
  std::vector<std::int64_t> numbers;
  if (by_loss_.empty()) return numbers;
  if (seen_.at(by_loss_.begin()->second).merit.scores.size() == 1) {
    for (auto at = by_loss_.begin(); numbers.size() < count; ++at) numbers.push_back(at->second);
    return numbers;
  }
  std::set<std::int64_t> ranked(front_.begin(), front_.end());
  if (ranked.size() < count)
    for (auto seen = seen_.rbegin(); seen != seen_.rend() && ranked.size() < kMostRanked; ++seen)
      if (!seen->second.merit.scores.empty()) ranked.insert(seen->first);
  const std::vector<std::int64_t> all(ranked.begin(), ranked.end());
  std::vector<const Merit*> merits;
  for (const auto each : all) merits.push_back(&seen_.at(each).merit);
  for (auto& front : fronts(merits, count)) {
    std::vector<const Merit*> of_front;
    for (const auto each : front) of_front.push_back(merits[each]);
    const auto distances = crowding(of_front);
    std::vector<std::pair<double, std::int64_t>> order;
    for (std::size_t i = 0; i < front.size(); ++i) order.emplace_back(-distances[i], all[front[i]]);
    std::ranges::sort(order);
    for (const auto& [distance, each] : order)
      if (numbers.size() < count) numbers.push_back(each);
  }
  return numbers;
}

Values Model::propose(std::int64_t number) const {
  if (known() < kFirst) return quasi_random(params_, number, seed_);
  const bool several = seen_.at(by_loss_.begin()->second).merit.scores.size() > 1;
  const auto open = std::ssize(seen_) - over_;
  const Shape& shape = several ? kSeveralGoals : open < kFewSideBySide ? kOneByOne : kSideBySide;
  const auto good_count =
      std::min(kMostGood,
               static_cast<std::size_t>(std::ceil(shape.good_part * static_cast<double>(known()))));
  auto numbers = best(good_count);
  std::vector<const Parts*> good, rest;
  for (const auto trial : numbers) good.push_back(&seen_.at(trial).parts);
  std::ranges::sort(numbers);
  for (auto seen = seen_.rbegin(); seen != seen_.rend() && rest.size() < kMostRest; ++seen)
    if (!std::ranges::binary_search(numbers, seen->first)) rest.push_back(&seen->second.parts);
  const Density here(params_, good, known(), shape), elsewhere(params_, rest, known(), shape);
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
