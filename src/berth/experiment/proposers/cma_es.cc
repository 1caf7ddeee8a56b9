#include "berth/experiment/proposers/cma_es.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "berth/experiment/proposers/quadratic_model.h"
#include "berth/experiment/proposers/space.h"

namespace berth::experiment {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kFirstStep = 0.25;      // of the whole line
constexpr double kLeastStep = 1e-10;     // a descent that moves less has arrived
constexpr double kFine = 1e-4;           // steps for which six digits are too few
constexpr double kMostCondition = 1e14;  // of the covariance
constexpr double kChoiceRate = 0.2;      // at which choices follow the good trials
constexpr int kResamples = 50;           // of a point beyond the space, before it is cut off
constexpr std::size_t kEarlier = 2;      // trials a parameter from which a start can be made
constexpr std::size_t kKeptStates = 64;  // a trial that ends after more generations costs a replay
constexpr std::size_t kModelled = 1000;  // latest trials of which the nearest make a model
// Points that are drawn for one that is proposed, and more for each trial that runs beside it. The
// more there are, the less the distribution learns: a turned ellipsoid takes longer with more.
constexpr std::size_t kDrawn = 3;
constexpr double kDrawnPerOpen = 0.25;
constexpr double kNarrowing = 1 / 6.0;      // power of the part of what is known that is in use
constexpr double kShareWidth = 0.28867513;  // 1/√12: the deviation of what is even on a unit

using Loss = std::pair<double, double>;  // what is broken of constraints, and the goal's
/// Trials of another search, the best first.
using Earlier = std::vector<std::pair<Loss, const Parts*>>;

Loss loss(const Heard& heard) {
  return {heard.merit.violation, heard.scored() ? -heard.merit.scores.front() : HUGE_VAL};
}

/// The constants of a population in some dimensions (Hansen, 2016, table 1).
struct Strategy {
  std::size_t parents;
  VectorXd weights;  // the best first; those of the worse half are negative
  double parents_mass, path_rate, damping, rank_one_path_rate, rank_one, rank_parents, length;

  Strategy(Index dimensions, std::size_t population)
      : parents(population / 2), weights(static_cast<Index>(population)) {
    const auto n = static_cast<double>(dimensions);
    double good = 0, good_squares = 0, bad = 0, bad_squares = 0;
    for (Index i = 0; i < weights.size(); ++i) {
      weights[i] = std::log((static_cast<double>(population) + 1) / 2) -
                   std::log(static_cast<double>(i) + 1);
      (weights[i] > 0 ? good : bad) += weights[i];
      (weights[i] > 0 ? good_squares : bad_squares) += weights[i] * weights[i];
    }
    parents_mass = good * good / good_squares;
    const double bad_mass = bad_squares > 0 ? bad * bad / bad_squares : 0;
    path_rate = (parents_mass + 2) / (n + parents_mass + 5);
    damping = 1 + 2 * std::max(0.0, std::sqrt((parents_mass - 1) / (n + 1)) - 1) + path_rate;
    rank_one_path_rate = (4 + parents_mass / n) / (n + 4 + 2 * parents_mass / n);
    rank_one = 2 / ((n + 1.3) * (n + 1.3) + parents_mass);
    rank_parents = std::min(1 - rank_one, 2 * (0.25 + parents_mass + 1 / parents_mass - 2) /
                                              ((n + 2) * (n + 2) + parents_mass));
    const double negative =
        std::min({1 + rank_one / rank_parents, 1 + 2 * bad_mass / (parents_mass + 2),
                  (1 - rank_one - rank_parents) / (n * rank_parents)});
    for (double& weight : weights) weight *= weight > 0 ? 1 / good : negative / -bad;
    length = std::sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));
  }
};

/// The shape of the valley in which the trials lie; nullopt: they tell of none.
std::optional<MatrixXd> valley_of(const Earlier& earlier, const std::vector<std::size_t>& ranges) {
  const auto count = static_cast<Index>(earlier.size());
  MatrixXd points(static_cast<Index>(ranges.size()), count);
  VectorXd values(count);
  for (Index i = 0; i < count; ++i) {
    const auto& [lost, parts] = earlier[static_cast<std::size_t>(i)];
    if (lost.first > 0) return std::nullopt;
    values[i] = lost.second;
    for (Index j = 0; j < points.rows(); ++j) {
      const auto& part = (*parts)[ranges[static_cast<std::size_t>(j)]];
      if (!part) return std::nullopt;
      points(j, i) = *part - 0.5;
    }
  }
  return QuadraticModel::valley(points, values);
}

}  // namespace

struct CmaEs::State {
  VectorXd mean, path, rank_one_path, axes;  // axes: lengths along the columns of `turn`
  MatrixXd covariance, turn;
  double step = kFirstStep;
  std::size_t population = 0;
  std::vector<std::vector<double>> chances{};       // of each choice of a parameter
  std::int64_t seen_to = INT64_MIN;                 // the greatest number that it has heard of
  std::vector<double> best_scores{};                // of the generations of this descent
  std::int64_t descents = 0, trials = 0;            // trials: of this descent
  std::size_t large = 0;                            // the greatest population so far
  std::int64_t trials_large = 0, trials_small = 0;  // in descents with such populations

  void adapt(const Strategy& strategy, const MatrixXd& steps);
  void restart(std::size_t usual, std::uint64_t seed);
  void begin(Index dimensions) {
    path = rank_one_path = VectorXd::Zero(dimensions);
    axes = VectorXd::Ones(dimensions);
    covariance = turn = MatrixXd::Identity(dimensions, dimensions);
    best_scores.clear();
    trials = 0;
  }
  /// C^(-1/2) y, of each column
  MatrixXd whitened(const MatrixXd& y) const {
    return turn * (axes.cwiseInverse().asDiagonal() * (turn.transpose() * y));
  }
  void factor() {
    covariance = (covariance + covariance.transpose()).eval() / 2;
    const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(covariance);
    turn = solver.eigenvectors();
    axes = solver.eigenvalues().cwiseMax(1e-30).cwiseSqrt();
  }
  VectorXd drawn(Rng& rng, double reach) const;
  bool arrived() const {
    if (step * axes.maxCoeff() < kLeastStep) return true;
    if (axes.maxCoeff() > std::sqrt(kMostCondition) * axes.minCoeff()) return true;
    const auto horizon = 10 + 30 * static_cast<std::size_t>(mean.size()) / population;
    if (best_scores.size() < horizon) return false;
    const auto [least, most] = std::minmax_element(
        best_scores.end() - static_cast<std::ptrdiff_t>(horizon), best_scores.end());
    return *most - *least <= 1e-12 * std::abs(*most);
  }
};

/// By a generation whose best steps stand first (Hansen, 2016, equations 38 to 47).
void CmaEs::State::adapt(const Strategy& strategy, const MatrixXd& steps) {
  const auto n = static_cast<double>(mean.size());
  const VectorXd ahead = steps * strategy.weights.cwiseMax(0);
  mean = (mean + step * ahead).cwiseMax(0).cwiseMin(1);
  const double path_rate = strategy.path_rate;
  path = (1 - path_rate) * path +
         std::sqrt(path_rate * (2 - path_rate) * strategy.parents_mass) * whitened(ahead);
  const auto generations = static_cast<double>(best_scores.size());
  const double expected = std::sqrt(1 - std::pow(1 - path_rate, 2 * generations));
  const bool slow = path.norm() / expected < (1.4 + 2 / (n + 1)) * strategy.length;
  const double rate = strategy.rank_one_path_rate;
  rank_one_path *= 1 - rate;
  if (slow) rank_one_path += std::sqrt(rate * (2 - rate) * strategy.parents_mass) * ahead;
  VectorXd weights = strategy.weights;
  for (Index i = 0; i < weights.size(); ++i)
    if (weights[i] < 0) weights[i] *= n / std::max(1e-12, whitened(steps.col(i)).squaredNorm());
  const double lost = slow ? 0 : strategy.rank_one * rate * (2 - rate);
  covariance *= 1 + lost - strategy.rank_one - strategy.rank_parents * strategy.weights.sum();
  covariance += strategy.rank_one * rank_one_path * rank_one_path.transpose() +
                strategy.rank_parents * steps * weights.asDiagonal() * steps.transpose();
  step *=
      std::exp(std::min(1.0, path_rate / strategy.damping * (path.norm() / strategy.length - 1)));
  step = std::min(step, 1.0);
}

/// A point of the distribution, made so much narrower, that lies in the space.
VectorXd CmaEs::State::drawn(Rng& rng, double reach) const {
  VectorXd point = mean;
  const auto inside = [&] {
    return point.size() == 0 || (point.minCoeff() >= 0 && point.maxCoeff() <= 1);
  };
  for (int i = 0; i == 0 || (i < kResamples && !inside()); ++i) {
    VectorXd z(point.size());
    for (double& each : z) each = normal(rng);
    point = mean + reach * step * (turn * axes.cwiseProduct(z));
  }
  return point.cwiseMax(0).cwiseMin(1);
}

/// The next descent: large populations, each twice the last one, and small ones take turns so that
/// both have about as many trials.
void CmaEs::State::restart(std::size_t usual, std::uint64_t seed) {
  Rng rng(mix(seed + 3) ^ mix(static_cast<std::uint64_t>(++descents)));
  (population >= large ? trials_large : trials_small) += trials;
  if (trials_large <= trials_small || descents == 1) {
    population = large = 2 * large;
    step = kFirstStep;
  } else {
    const double ratio = 0.5 * static_cast<double>(large) / static_cast<double>(usual);
    const double draw = rng.uniform();
    population = std::max(
        usual, static_cast<std::size_t>(static_cast<double>(usual) * std::pow(ratio, draw * draw)));
    step = kFirstStep * std::pow(10, -2 * rng.uniform());
  }
  for (double& each : mean) each = rng.uniform();
  for (auto& each : chances) std::ranges::fill(each, 1 / static_cast<double>(each.size()));
  begin(mean.size());
}

CmaEs::CmaEs(std::vector<Parameter> params, std::uint64_t seed, std::int64_t from)
    : params_(std::move(params)), seed_(seed), from_(from) {
  for (std::size_t at = 0; at < params_.size(); ++at)
    (params_[at].choices.empty() ? ranges_ : choices_).push_back(at);
}

void CmaEs::tell(const TrialReport& trial) {
  if (!add(history_, params_, trial)) return;
  ++over_;
  while (!states_.empty() && states_.back()->seen_to >= trial.number) states_.pop_back();
}

std::size_t CmaEs::population() const {
  return 4 +
         static_cast<std::size_t>(3 * std::log(std::max(1.0, static_cast<double>(params_.size()))));
}

std::shared_ptr<const CmaEs::State> CmaEs::first() const {
  const auto dimensions = static_cast<Index>(ranges_.size());
  State state;
  state.mean = VectorXd::Constant(dimensions, 0.5);
  state.population = state.large = population();
  for (const auto at : choices_) {
    const auto count = params_[at].choices.size();
    state.chances.emplace_back(count, 1 / static_cast<double>(count));
  }
  state.begin(dimensions);
  state.seen_to = from_ - 1;
  Earlier earlier;
  for (auto at = history_.begin(); at != history_.end() && at->first < from_; ++at)
    if (at->second.scored()) earlier.emplace_back(loss(at->second), &at->second.parts);
  std::ranges::stable_sort(earlier, {}, &Earlier::value_type::first);
  if (earlier.size() < kEarlier * (ranges_.size() + 1))
    return std::make_shared<const State>(std::move(state));
  const Parts& best = *earlier.front().second;
  std::vector<double> away;
  for (std::size_t i = 1; i <= ranges_.size() + 1; ++i) {
    double squares = 0;
    for (const auto at : ranges_)
      squares += std::pow((*earlier[i].second)[at].value_or(0.5) - best[at].value_or(0.5), 2);
    away.push_back(std::sqrt(squares / std::max(1.0, static_cast<double>(dimensions))));
  }
  std::ranges::nth_element(away, away.begin() + std::ssize(away) / 2);
  state.step = std::clamp(away[away.size() / 2], 1e-5, kFirstStep);
  for (Index j = 0; j < dimensions; ++j)
    state.mean[j] = best[ranges_[static_cast<std::size_t>(j)]].value_or(0.5);
  if (const auto valley = valley_of(earlier, ranges_)) {
    state.covariance = *valley * (static_cast<double>(dimensions) / valley->trace());
    state.factor();
  }
  for (std::size_t k = 0; k < choices_.size(); ++k)
    if (const auto& part = best[choices_[k]]) {
      auto& chances = state.chances[k];
      const double even = 1 / static_cast<double>(chances.size());
      for (std::size_t i = 0; i < chances.size(); ++i)
        chances[i] =
            (even +
             (i == static_cast<std::size_t>(*part * static_cast<double>(chances.size())) ? 1 : 0)) /
            2;
    }
  return std::make_shared<const State>(std::move(state));
}

/// After all generations that are complete.
const CmaEs::State& CmaEs::state() const {
  if (states_.empty()) states_.push_back(first());
  std::vector<std::int64_t> generation;
  for (auto at = history_.upper_bound(states_.back()->seen_to); at != history_.end(); ++at) {
    if (!at->second.over) continue;
    generation.push_back(at->first);
    if (generation.size() < states_.back()->population) continue;
    states_.push_back(after(*states_.back(), generation));
    if (states_.size() > kKeptStates) states_.pop_front();
    generation.clear();
  }
  return *states_.back();
}

/// The trials that make a step of the distribution, the best first.
struct CmaEs::Generation {
  const CmaEs& search;
  std::vector<std::int64_t> ranked{};

  Loss loss_of(std::int64_t number) const { return loss(search.history_.at(number)); }
  MatrixXd steps_from(const State& state) const;
  void lead(State& state, const VectorXd& weights) const;
};

/// The steps of the trials from the mean, a column each, in units of the step size.
MatrixXd CmaEs::Generation::steps_from(const State& state) const {
  const auto dimensions = static_cast<Index>(search.ranges_.size());
  MatrixXd steps(dimensions, std::ssize(ranked));
  const auto n = static_cast<double>(dimensions);
  const double longest = std::sqrt(n) + 2 * n / (n + 2);
  for (Index i = 0; i < steps.cols(); ++i) {
    const auto number = ranked[static_cast<std::size_t>(i)];
    const Parts& parts = search.history_.at(number).parts;
    Rng rng(mix(search.seed_ + 5) ^ mix(static_cast<std::uint64_t>(number)));
    for (Index j = 0; j < dimensions; ++j) {
      const auto at = search.ranges_[static_cast<std::size_t>(j)];
      if (!parts[at]) {
        steps(j, i) = std::sqrt(state.covariance(j, j)) * normal(rng);
        continue;
      }
      const double within = share(search.params_[at], *parts[at]) * (rng.uniform() - 0.5);
      steps(j, i) = (*parts[at] + within - state.mean[j]) / state.step;
    }
    // What was drawn from an earlier, wider distribution counts as far as this one reaches.
    const double length = state.whitened(steps.col(i)).norm();
    if (length > longest) steps.col(i) *= longest / length;
  }
  return steps;
}

/// Moves the chances of choices towards those of the good trials, and keeps one for each other.
void CmaEs::Generation::lead(State& state, const VectorXd& weights) const {
  const double rest =
      1 - std::pow(0.73, 1 / std::max(1.0, static_cast<double>(search.choices_.size())));
  for (std::size_t k = 0; k < search.choices_.size(); ++k) {
    const auto before = state.chances[k];
    const auto count = static_cast<double>(before.size());
    auto& chances = state.chances[k];
    for (double& chance : chances) chance *= 1 - kChoiceRate;
    for (std::size_t i = 0; i < ranked.size() && weights[static_cast<Index>(i)] > 0; ++i) {
      const double weight = kChoiceRate * weights[static_cast<Index>(i)];
      const auto& part = search.history_.at(ranked[i]).parts[search.choices_[k]];
      if (part)
        chances[static_cast<std::size_t>(*part * count)] += weight;
      else
        for (std::size_t at = 0; at < chances.size(); ++at) chances[at] += weight * before[at];
    }
    double sum = 0;
    for (double& chance : chances) sum += chance = std::max(chance, rest / count);
    for (double& chance : chances) chance /= sum;
  }
}

std::shared_ptr<const CmaEs::State> CmaEs::after(
    const State& before, const std::vector<std::int64_t>& generation) const {
  State state = before;
  const auto dimensions = static_cast<Index>(ranges_.size());
  const Strategy strategy(std::max<Index>(1, dimensions), state.population);
  Generation ended{*this, generation};
  std::ranges::stable_sort(ended.ranked, {}, [&](auto number) { return ended.loss_of(number); });
  state.seen_to = generation.back();
  state.trials += std::ssize(generation);
  const auto [violation, lost] = ended.loss_of(ended.ranked.front());
  state.best_scores.push_back(violation > 0 ? violation : lost);
  ended.lead(state, strategy.weights);
  if (dimensions == 0) return std::make_shared<const State>(std::move(state));

  state.adapt(strategy, ended.steps_from(state));
  for (Index j = 0; j < dimensions; ++j) {
    const Parameter& parameter = params_[ranges_[static_cast<std::size_t>(j)]];
    const double least = kShareWidth * share(parameter, state.mean[j]) / state.step;
    const double width = std::sqrt(state.covariance(j, j));
    if (width >= least) continue;
    state.covariance.row(j) *= least / width;
    state.covariance.col(j) *= least / width;
  }
  state.factor();
  if (state.arrived()) state.restart(population(), seed_);
  return std::make_shared<const State>(std::move(state));
}

/// Of its own trials that lie nearest, in units of the distribution; nullopt: they are too few.
/// Those of another search, with which it began, lie as that one wanted them, and mislead.
std::optional<QuadraticModel> CmaEs::model_around(const State& now) const {
  if (ranges_.empty()) return std::nullopt;
  std::vector<const Heard*> ended;
  for (auto at = history_.rbegin(); at != history_.rend() && ended.size() < kModelled; ++at)
    if (at->first >= from_ && at->second.over) ended.push_back(&at->second);
  MatrixXd points(now.mean.size(), std::ssize(ended));
  for (Index i = 0; i < points.cols(); ++i)
    for (Index j = 0; j < points.rows(); ++j) {
      const auto& part =
          ended[static_cast<std::size_t>(i)]->parts[ranges_[static_cast<std::size_t>(j)]];
      points(j, i) = (part.value_or(now.mean[j]) - now.mean[j]) / now.step;
    }
  points = now.whitened(points);
  std::vector<std::pair<double, Index>> nearest;
  for (Index i = 0; i < points.cols(); ++i) nearest.emplace_back(points.col(i).squaredNorm(), i);
  std::ranges::sort(nearest);
  if (const auto enough = QuadraticModel::enough(points.rows()); nearest.size() > enough)
    nearest.resize(enough);
  std::vector<std::pair<Loss, Index>> ranked;
  for (const auto& [distance, i] : nearest)
    ranked.emplace_back(loss(*ended[static_cast<std::size_t>(i)]), i);
  std::ranges::sort(ranked);
  MatrixXd sorted(points.rows(), std::ssize(ranked));
  std::vector<bool> equal;
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    sorted.col(static_cast<Index>(i)) = points.col(ranked[i].second);
    equal.push_back(i > 0 && ranked[i].first == ranked[i - 1].first);
  }
  return QuadraticModel::fit(sorted, equal);
}

Values CmaEs::propose(std::int64_t number) const {
  const State& now = state();
  Rng rng(mix(seed_) ^ mix(static_cast<std::uint64_t>(number)));
  const auto beside = static_cast<double>(history_.size() - over_);
  const auto usual = static_cast<double>(now.population);
  const double reach = std::pow(usual / (usual + beside), kNarrowing);
  VectorXd point = now.drawn(rng, reach);
  if (const auto model = model_around(now)) {
    const auto count = kDrawn + static_cast<std::size_t>(kDrawnPerOpen * beside);
    const auto expected_of = [&](const VectorXd& each) {
      return model->at(now.whitened(each - now.mean) / now.step);
    };
    double least = expected_of(point);
    for (std::size_t i = 1; i < count; ++i) {
      VectorXd other = now.drawn(rng, reach);
      const double expected = expected_of(other);
      if (expected >= least) continue;
      least = expected;
      point = std::move(other);
    }
  }
  Values values;
  // Six digits, unless the steps have become too small for them to tell points apart.
  const bool fine = point.size() > 0 && now.step * now.axes.maxCoeff() < kFine;
  const int digits = fine ? 12 : 6;
  std::size_t range = 0, choice = 0;
  for (const auto& parameter : params_) {
    double part = 0;
    if (parameter.choices.empty()) {
      part = point[static_cast<Index>(range++)];
    } else {
      const auto& chances = now.chances[choice++];
      double draw = rng.uniform();
      std::size_t at = 0;
      while (at + 1 < chances.size() && draw >= chances[at]) draw -= chances[at++];
      part = (static_cast<double>(at) + 0.5) / static_cast<double>(chances.size());
    }
    if (present(parameter, values))
      values.emplace_back(parameter.name, value_at(parameter, part, digits));
  }
  return values;
}

}  // namespace berth::experiment
