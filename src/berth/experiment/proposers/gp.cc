#include "berth/experiment/proposers/gp.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "berth/experiment/proposers/gaussian_process.h"
#include "berth/experiment/proposers/space.h"

namespace berth::experiment {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

constexpr std::size_t kMostFitted = 120;  // points that a kernel is fitted to
constexpr std::size_t kMostKnown = 500;   // points of a process: of more the best and the latest
constexpr double kRefit = 1.15;  // a kernel serves until there are so many times the points
constexpr int kStarts = 1000, kAround = 40, kClimbers = 8, kClimbSteps = 40;

double yeo_johnson(double x, double power) {
  if (x >= 0) return power == 0 ? std::log1p(x) : (std::pow(x + 1, power) - 1) / power;
  return power == 2 ? -std::log1p(-x) : -(std::pow(1 - x, 2 - power) - 1) / (2 - power);
}

void standardise(VectorXd& values) {
  values.array() -= values.mean();
  const double deviation = std::sqrt(values.squaredNorm() / static_cast<double>(values.size()));
  if (deviation > 0) values /= deviation;
}

/// Made as normal as a power makes them (Yeo and Johnson, 2000): the likeliest of some.
VectorXd normal_scores(VectorXd values) {
  standardise(values);
  VectorXd best = values;
  double most = -HUGE_VAL;
  for (int step = -4; step <= 12; ++step) {
    const double power = step * 0.5;
    VectorXd bent = values.unaryExpr([&](double x) { return yeo_johnson(x, power); });
    const double mean = bent.mean();
    const double variance = (bent.array() - mean).square().mean();
    double likelihood = -0.5 * static_cast<double>(values.size()) * std::log(variance + 1e-300);
    for (const double x : values)
      likelihood += (power - 1) * std::copysign(std::log1p(std::abs(x)), x);
    if (!(likelihood > most)) continue;
    most = likelihood;
    best = std::move(bent);
  }
  standardise(best);
  return best;
}

/// log of the expected improvement in units of the deviation, at z deviations above the best, and
/// its slope along z.
std::pair<double, double> log_improvement(double z) {
  constexpr double kLogRoot = 0.91893853320467274;  // log √(2π)
  if (z < -8) {
    const double inverse = 1 / (z * z);
    return {-z * z / 2 - kLogRoot + std::log(inverse) + std::log1p(-3 * inverse),
            -z * (1 + 2 * inverse)};
  }
  const double density = std::exp(-z * z / 2 - kLogRoot);
  const double below = 0.5 * std::erfc(-z / std::numbers::sqrt2);
  const double improvement = density + z * below;
  return {std::log(improvement), below / improvement};
}

/// log of the part of a normal distribution below z, and its slope.
std::pair<double, double> log_below(double z) {
  constexpr double kLogRoot = 0.91893853320467274;  // log √(2π)
  const double log_density = -z * z / 2 - kLogRoot;
  const double below =
      z < -20 ? log_density - std::log(-z) : std::log(0.5 * std::erfc(-z / std::numbers::sqrt2));
  return {below, std::exp(log_density - below)};
}

}  // namespace

std::map<std::int64_t, double> single_scores(const History& history, std::int64_t number,
                                             std::uint64_t seed) {
  std::vector<double> least, most;
  for (const auto& [trial, heard] : history) {
    least.resize(std::max(least.size(), heard.merit.scores.size()), HUGE_VAL);
    most.resize(least.size(), -HUGE_VAL);
    for (std::size_t goal = 0; goal < heard.merit.scores.size(); ++goal) {
      least[goal] = std::min(least[goal], heard.merit.scores[goal]);
      most[goal] = std::max(most[goal], heard.merit.scores[goal]);
    }
  }
  Rng rng(mix(seed + 1) ^ mix(static_cast<std::uint64_t>(number)));
  std::vector<double> weights;
  for (std::size_t goal = 0; goal < least.size(); ++goal)
    weights.push_back(-std::log(1 - rng.uniform()));
  std::map<std::int64_t, double> scores;
  for (const auto& [trial, heard] : history) {
    if (!heard.over) continue;
    double worst = 0, sum = 0;
    for (std::size_t goal = 0; goal < heard.merit.scores.size(); ++goal) {
      const double range = most[goal] - least[goal];
      const double away =
          range > 0 ? weights[goal] * (most[goal] - heard.merit.scores[goal]) / range : 0;
      worst = std::max(worst, away);
      sum += away;
    }
    scores[trial] = heard.merit.scores.empty()       ? -HUGE_VAL
                    : heard.merit.scores.size() == 1 ? heard.merit.scores[0]
                                                     : -worst - 0.05 * sum;
  }
  return scores;
}

struct Gp::Fitted {
  std::vector<std::pair<std::int64_t, double>> to;  // trials and their scores
  MaternKernel kernel;
  std::vector<MaternKernel> of_constraints{};
};

Gp::Gp(std::vector<Parameter> params, std::uint64_t seed)
    : params_(std::move(params)), seed_(seed) {}
Gp::~Gp() = default;

void Gp::tell(const TrialReport& trial) {
  if (add(history_, params_, trial)) ++over_;
}

namespace {

struct Data {
  std::vector<std::int64_t> numbers;
  MatrixXd points;
  VectorXd values;
};

/// The ended trials among the numbers, their values normal; failed ones as the worst.
Data data_of(const Embedding& embedding, const History& history,
             std::vector<std::pair<std::int64_t, double>> scored) {
  Data data{{}, MatrixXd(std::ssize(scored), embedding.columns()), VectorXd(std::ssize(scored))};
  double worst = HUGE_VAL;
  for (const auto& [number, score] : scored)
    if (score > -HUGE_VAL) worst = std::min(worst, score);
  for (Index i = 0; i < data.values.size(); ++i) {
    const auto& [number, score] = scored[static_cast<std::size_t>(i)];
    data.numbers.push_back(number);
    data.points.row(i) = embedding.row(history.at(number).parts);
    data.values[i] = std::isinf(worst) ? 0 : std::max(worst, score);
  }
  data.values = normal_scores(data.values);
  return data;
}

}  // namespace

namespace {

/// What trials broke of a constraint, made like a normal distribution, and where its bound is then.
/// Failed trials count as the worst.
struct Broken {
  VectorXd values;
  double bound = 0;
};

Broken broken_of(const History& history, const std::vector<std::int64_t>& numbers,
                 std::size_t constraint) {
  Broken broken{VectorXd(std::ssize(numbers))};
  double most = 0;
  for (const auto number : numbers)
    if (const auto& all = history.at(number).excesses; !all.empty())
      most = std::max(most, all[constraint]);
  for (Index i = 0; i < broken.values.size(); ++i) {
    const auto& all = history.at(numbers[static_cast<std::size_t>(i)]).excesses;
    broken.values[i] = all.empty() ? most : all[constraint];
  }
  // Far from the bound it matters little how far.
  const double usual =
      std::sqrt(broken.values.squaredNorm() / static_cast<double>(broken.values.size()));
  for (double& each : broken.values)
    each = usual > 0 ? std::copysign(std::log1p(std::abs(each) / usual), each) : 0;
  const double mean = broken.values.mean();
  const double deviation = std::sqrt((broken.values.array() - mean).square().mean());
  standardise(broken.values);
  broken.bound = -mean / (deviation > 0 ? deviation : 1);
  return broken;
}

std::size_t constraints_of(const History& history) {
  std::size_t count = 0;
  for (const auto& [number, heard] : history) count = std::max(count, heard.excesses.size());
  return count;
}

}  // namespace

/// A kernel is fitted to the trials up to one of ever farther numbers, of many to the best and some
/// others.
const Gp::Fitted& Gp::fitted() const {
  std::int64_t last = INT64_MIN;
  double bound = 4;
  for (const auto& [number, heard] : history_)
    if (heard.over) last = number;
  while (std::ceil(bound * kRefit) <= static_cast<double>(last)) bound = std::ceil(bound * kRefit);
  std::vector<std::pair<std::int64_t, double>> scored;
  for (const auto& [number, score] : single_scores(history_, 0, seed_))
    if (static_cast<double>(number) <= std::max(bound, 1.0)) scored.emplace_back(number, score);
  if (scored.size() > kMostFitted) {
    std::ranges::sort(scored, std::greater(), &std::pair<std::int64_t, double>::second);
    std::ranges::sort(scored.begin() + kMostFitted / 2, scored.end(), {},
                      [](const auto& each) { return mix(static_cast<std::uint64_t>(each.first)); });
    scored.resize(kMostFitted);
    std::ranges::sort(scored);
  }
  if (fitted_ && fitted_->to == scored) return *fitted_;
  const Embedding embedding(params_);
  const Data data = data_of(embedding, history_, scored);
  fitted_ = std::make_unique<Fitted>(
      Fitted{std::move(scored), fit_kernel(embedding, data.points, data.values)});
  for (std::size_t each = 0; each < constraints_of(history_); ++each)
    fitted_->of_constraints.push_back(
        fit_kernel(embedding, data.points, broken_of(history_, data.numbers, each).values));
  return *fitted_;
}

namespace {

/// What a point is worth: the log of the improvement that a process expects of it, times the
/// chance that it keeps all constraints (Gardner et al., 2014). While no trial keeps them, that
/// chance alone counts.
class Worth {
 public:
  struct Bound {
    GaussianProcess process;
    double most;
  };
  Worth(GaussianProcess goal, double best, std::vector<Bound> bounds)
      : goal_(std::move(goal)), best_(best), bounds_(std::move(bounds)) {}

  VectorXd of_all(const MatrixXd& rows) const {
    VectorXd worth = VectorXd::Zero(rows.rows());
    if (best_ > -HUGE_VAL) {
      const auto [means, deviations] = goal_.at_all(rows);
      for (Index i = 0; i < rows.rows(); ++i)
        worth[i] =
            std::log(deviations[i]) + log_improvement((means[i] - best_) / deviations[i]).first;
    }
    for (const auto& bound : bounds_) {
      const auto [means, deviations] = bound.process.at_all(rows);
      for (Index i = 0; i < rows.rows(); ++i)
        worth[i] += log_below((bound.most - means[i]) / deviations[i]).first;
    }
    return worth;
  }

  /// With its slope along the columns.
  std::pair<double, RowVectorXd> of(const RowVectorXd& row) const {
    double worth = 0;
    RowVectorXd up = RowVectorXd::Zero(row.size());
    if (best_ > -HUGE_VAL) {
      const auto expected = goal_.at(row);
      const double z = (expected.mean - best_) / expected.deviation;
      const auto [log_worth, slope] = log_improvement(z);
      worth = std::log(expected.deviation) + log_worth;
      up = (expected.deviation_slope +
            slope * (expected.mean_slope - z * expected.deviation_slope)) /
           expected.deviation;
    }
    for (const auto& bound : bounds_) {
      const auto expected = bound.process.at(row);
      const double z = (bound.most - expected.mean) / expected.deviation;
      const auto [log_chance, slope] = log_below(z);
      worth += log_chance;
      up -= slope * (expected.mean_slope + z * expected.deviation_slope) / expected.deviation;
    }
    return {worth, up};
  }

 private:
  GaussianProcess goal_;
  double best_;  // of the trials that keep all constraints; -HUGE_VAL: none does
  std::vector<Bound> bounds_;
};

/// Where the worth is greatest.
class Climb {
 public:
  Climb(const std::vector<Parameter>& params, const Embedding& embedding, const Worth& worth,
        const std::set<Parts>& tried)
      : params_(params), embedding_(embedding), worth_(worth), tried_(tried) {}

  Values best(const std::vector<Parts>& good, Rng& rng) const {
    std::vector<Parts> starts;
    for (int i = 0; i < kStarts; ++i) starts.push_back(drawn({}, 0, rng));
    for (const auto& parts : good)
      for (int i = 0; i < kAround; ++i)
        starts.push_back(drawn(parts, 0.2 * std::pow(10, -2.5 * rng.uniform()), rng));
    MatrixXd rows(std::ssize(starts), embedding_.columns());
    for (Index i = 0; i < rows.rows(); ++i)
      rows.row(i) = embedding_.row(starts[static_cast<std::size_t>(i)]);
    const VectorXd worths = worth_.of_all(rows);
    std::vector<std::pair<double, std::size_t>> ranked;
    for (Index i = 0; i < rows.rows(); ++i)
      ranked.emplace_back(-worths[i], static_cast<std::size_t>(i));
    std::ranges::sort(ranked);
    std::optional<Parts> chosen, again;
    double most = -HUGE_VAL;
    for (int i = 0; i < kClimbers; ++i) {
      const Parts& start = starts[ranked[static_cast<std::size_t>(i)].second];
      const auto [parts, reached] = climb(start);
      if (!again) again = parts;
      if (tried_.contains(parts) || (chosen && reached <= most)) continue;
      most = reached;
      chosen = parts;
    }
    // All climbs may end at points that were tried, in a discrete space.
    for (const auto& [worth, i] : ranked)
      if (!chosen && !tried_.contains(starts[i])) chosen = starts[i];
    return values_at(chosen ? *chosen : *again);
  }

 private:
  /// What the parts mean: whole numbers, six digits, only what a point has.
  Values values_at(const Parts& parts) const {
    Values values;
    for (std::size_t at = 0; at < params_.size(); ++at)
      if (present(params_[at], values))
        values.emplace_back(params_[at].name, value_at(params_[at], parts[at].value_or(0.5)));
    return values;
  }

  /// By chance in the whole space, or near some parts.
  Parts drawn(const Parts& near, double width, Rng& rng) const {
    Parts parts;
    for (std::size_t at = 0; at < params_.size(); ++at) {
      const bool again = !near.empty() && near[at].has_value();
      double part = rng.uniform();
      const double chance = rng.uniform();
      if (again && params_[at].choices.empty())
        part = std::clamp(*near[at] + std::max(width, share(params_[at], *near[at]) / 2) *
                                          normal(rng) * (chance < 0.7 ? 1 : 0),
                          0.0, 1.0);
      else if (again && chance < 0.8)
        part = *near[at];
      parts.push_back(part);
    }
    return parts_of(params_, values_at(parts));
  }

  std::pair<Parts, double> climb(const Parts& start) const {
    RowVectorXd row = embedding_.row(start), best_row = row;
    double best = -HUGE_VAL;
    VectorXd steps = VectorXd::Constant(row.size(), 0.01), last = VectorXd::Zero(row.size());
    for (int step = 0; step < kClimbSteps; ++step) {
      const auto [reached, up] = worth_.of(row);
      if (reached > best) {
        best = reached;
        best_row = row;
      }
      for (std::size_t at = 0; at < params_.size(); ++at) {
        if (!start[at] || !params_[at].choices.empty()) continue;
        const Index column = embedding_.first(at);
        const double turn = up[column] * last[column];
        steps[column] = turn > 0   ? std::min(0.1, 1.4 * steps[column])
                        : turn < 0 ? 0.4 * steps[column]
                                   : steps[column];
        last[column] = up[column];
        row[column] = std::clamp(
            row[column] + std::copysign(steps[column], up[column]) * (up[column] != 0), 0.0, 1.0);
      }
    }
    Parts parts = start;
    for (std::size_t at = 0; at < params_.size(); ++at)
      if (start[at] && params_[at].choices.empty()) parts[at] = best_row[embedding_.first(at)];
    parts = parts_of(params_, values_at(parts));
    return {parts, worth_.of(embedding_.row(parts)).first};
  }

  const std::vector<Parameter>& params_;
  const Embedding& embedding_;
  const Worth& worth_;
  const std::set<Parts>& tried_;
};

/// What a trial breaks and its loss, and its number.
using Ranked = std::pair<std::pair<double, double>, std::int64_t>;

/// As many as a process is made of: of more the better half, and the latest of the others.
std::vector<std::pair<std::int64_t, double>> known_best(
    const std::map<std::int64_t, double>& scores, const std::vector<Ranked>& ranked) {
  if (scores.size() <= kMostKnown) return {scores.begin(), scores.end()};
  std::set<std::int64_t> chosen;
  for (std::size_t i = 0; i < kMostKnown / 2; ++i) chosen.insert(ranked[i].second);
  for (auto at = scores.rbegin(); chosen.size() < kMostKnown; ++at) chosen.insert(at->first);
  std::vector<std::pair<std::int64_t, double>> known;
  for (const auto number : chosen) known.emplace_back(number, scores.at(number));
  return known;
}

}  // namespace

Values Gp::propose(std::int64_t number) const {
  const auto first = std::max<std::int64_t>(6, std::ssize(params_) + 1);
  if (over_ < first || params_.empty()) return quasi_random(params_, number, seed_);
  const Embedding embedding(params_);
  const auto scores = single_scores(history_, number, seed_);
  std::vector<Ranked> ranked;
  for (const auto& [trial, score] : scores)
    ranked.emplace_back(std::pair(history_.at(trial).merit.violation, -score), trial);
  std::ranges::sort(ranked);
  Data data = data_of(embedding, history_, known_best(scores, ranked));
  std::vector<Parts> open;
  std::set<Parts> tried;
  for (const auto& [trial, heard] : history_) {
    tried.insert(heard.parts);
    if (!heard.over) open.push_back(heard.parts);
  }
  const Index known = data.points.rows();
  data.points.conservativeResize(known + std::ssize(open), Eigen::NoChange);
  for (std::size_t i = 0; i < open.size(); ++i)
    data.points.row(known + static_cast<Index>(i)) = embedding.row(open[i]);
  const Fitted& kernels = fitted();
  GaussianProcess process(embedding, kernels.kernel, data.points, data.values);
  double best = -HUGE_VAL;
  for (std::size_t i = 0; i < data.numbers.size(); ++i)
    if (kernels.of_constraints.empty() || history_.at(data.numbers[i]).merit.violation == 0)
      best = std::max(best, process.means()[static_cast<Index>(i)]);
  std::vector<Worth::Bound> bounds;
  for (std::size_t each = 0; each < kernels.of_constraints.size(); ++each) {
    const Broken broken = broken_of(history_, data.numbers, each);
    bounds.push_back(
        {GaussianProcess(embedding, kernels.of_constraints[each], data.points, broken.values),
         broken.bound});
  }
  const Worth worth(std::move(process), best, std::move(bounds));

  std::vector<Parts> good;
  for (std::size_t i = 0; i < std::min<std::size_t>(5, ranked.size()); ++i)
    good.push_back(history_.at(ranked[i].second).parts);
  Rng rng(mix(seed_) ^ mix(static_cast<std::uint64_t>(number)));
  return Climb(params_, embedding, worth, tried).best(good, rng);
}

}  // namespace berth::experiment
