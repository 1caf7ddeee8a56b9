#include "berth/experiment/proposers/halving.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "berth/base/units.h"
#include "berth/experiment/proposers/space.h"
#include "berth/experiment/proposers/untried.h"

namespace berth::experiment {
namespace {

constexpr std::size_t kEnough = 10;  // trials of a level, for a model to tell good from bad
/// One of so many new trials is drawn by chance all the same, so that a model that was led astray
/// by little training finds back (Falkner et al., 2018, have a third too).
constexpr std::int64_t kByChance = 3;
constexpr double kFailed = -HUGE_VAL;

/// The number of trials of a round that begin at each level. All brackets spend about the same.
std::vector<std::int64_t> bracket_sizes(const Budget& budget) {
  const auto count = static_cast<double>(levels(budget).size());
  std::vector<std::int64_t> sizes;
  for (double rungs = count; rungs >= 1; --rungs) {
    const double group = std::pow(static_cast<double>(budget.reduction), rungs - 1);
    sizes.push_back(std::llround(budget.whole_groups ? std::floor(count / rungs) * group
                                                     : std::ceil(count / rungs * group)));
  }
  return sizes;
}

}  // namespace

bool whole(const Budget& budget) {
  return budget.whole && budget.min == std::floor(budget.min) &&
         budget.max == std::floor(budget.max);
}

std::vector<double> levels(const Budget& budget) {
  std::vector<double> levels;
  if (budget.every > 0) {
    const auto count = std::ceil(budget.max / budget.every * (1 - 1e-9));
    for (double level = 1; level < count; ++level) levels.push_back(level * budget.every);
    levels.push_back(budget.max);
    return levels;
  }
  const auto factor = static_cast<double>(budget.reduction);
  for (double amount = budget.max; amount >= budget.min * (1 - 1e-9); amount /= factor) {
    levels.push_back(whole(budget) ? std::round(amount) : amount);
    if (amount <= 0) break;
  }
  std::ranges::reverse(levels);
  return levels;
}

std::optional<std::size_t> level_of(const Budget& budget, const Values& params) {
  const auto* amount = find_value(params, budget.parameter);
  const auto all = levels(budget);
  for (std::size_t level = 0; level < all.size() && amount != nullptr; ++level)
    if (budget_text(budget, all[level]) == *amount) return level;
  return std::nullopt;
}

std::string budget_text(const Budget& budget, double amount) {
  return budget.whole ? number_text(amount, budget.min, budget.max) : format_number(amount);
}

std::int64_t hyperband_round(const Budget& budget) {
  return hyperband_samples(budget, static_cast<std::int64_t>(levels(budget).size()));
}

std::int64_t hyperband_samples(const Budget& budget, std::int64_t brackets) {
  const auto sizes = bracket_sizes(budget);
  const auto count = static_cast<std::int64_t>(sizes.size());
  const auto sum = [&](std::int64_t first) {
    return std::accumulate(sizes.begin(), sizes.begin() + first, std::int64_t{0});
  };
  return brackets / count * sum(count) + sum(brackets % count);
}

Halving::Halving(const Program& program)
    : program_(program),
      levels_(levels(*program.search.budget)),
      samples_(program.search.samples),
      discrete_(has_end(program)) {
  const bool hyperband = program.search.method == Search::Method::hyperband;
  const auto sizes =
      hyperband ? bracket_sizes(*program.search.budget) : std::vector<std::int64_t>{1};
  for (std::size_t level = 0; level < sizes.size(); ++level)
    brackets_.insert(brackets_.end(), static_cast<std::size_t>(sizes[level]), level);
  if (samples_ == 0) samples_ = static_cast<std::int64_t>(brackets_.size());
  rungs_.assign(levels_.size(), std::vector<Rung>(levels_.size()));
  models_.assign(levels_.size(), Model(program.params, program.search.seed));
}

/// The level at which it begins.
std::size_t Halving::bracket(std::int64_t trial) const {
  return brackets_[static_cast<std::size_t>(trial - 1) % brackets_.size()];
}

void Halving::tell(const TrialReport& report) {
  const Budget& budget = *program_.search.budget;
  const auto found = level_of(budget, report.trial.params);
  const auto number = parse_integer(report.trial.label.substr(0, report.trial.label.find('@')));
  if (!found || !number) return;  // not a trial of this search
  const std::size_t level = *found;
  Values params = report.trial.params;
  std::erase_if(params, [&](const auto& value) { return value.first == budget.parameter; });
  TrialReport point = report;
  point.number = *number;
  point.trial.params = params;
  models_[level].tell(point);
  if (discrete_) points_.insert(parts_of(program_.params, params));
  trials_[*number] = std::move(params);

  auto& rungs = rungs_[bracket(*number)];
  if (begun_.emplace(*number, level).second && level > bracket(*number)) {
    ++rungs[level - 1].gone_on;
    std::erase_if(rungs[level - 1].waiting,
                  [&](const auto& each) { return each.second == *number; });
  }
  if (report.state == TrialReport::State::open) {
    open_.insert(report.trial.label);
    return;
  }
  open_.erase(report.trial.label);
  const double score = report.scores.empty() ? kFailed : report.scores.front();
  rungs[level].ended.emplace(-score, *number);
  const bool goes_on =
      level + 1 < levels_.size() && score != kFailed && !begun_.contains({*number, level + 1});
  if (goes_on) rungs[level].waiting.emplace(-score, *number);
}

/// One of the best part of the rung that was not gone on with.
std::optional<std::int64_t> Halving::promotable(const Rung& rung) const {
  if (rung.waiting.empty()) return std::nullopt;
  const auto first = *rung.waiting.begin();
  const auto better = std::distance(rung.ended.begin(), rung.ended.find(first));
  const auto part =
      static_cast<std::int64_t>(rung.ended.size()) / program_.search.budget->reduction;
  // With a model later trials are better than earlier ones: most of them would be among the best as
  // they end, and nearly all would go on.
  if (program_.search.model && rung.gone_on >= part) return std::nullopt;
  return better < part ? std::optional(first.second) : std::nullopt;
}

Proposal Halving::proposal(std::int64_t trial, const Values& params, std::size_t level) const {
  const Budget& budget = *program_.search.budget;
  Proposal next{
      .label = fmt::format("{}@{}", trial, number_text(levels_[level], budget.min, budget.max)),
      .params = params};
  next.params.emplace_back(budget.parameter, budget_text(budget, levels_[level]));
  return next;
}

/// As the model of the highest level that tells enough would have it, or by chance.
Values Halving::drawn(std::int64_t trial) const {
  if (program_.search.model && trial % kByChance != 0)
    for (std::size_t level = models_.size(); level-- > 0;)
      if (models_[level].known() >= kEnough) return models_[level].propose(trial);
  return quasi_random(program_.params, trial, program_.search.seed);
}

/// A new point. In a discrete space points repeat only when none is left.
Values Halving::fresh(std::int64_t trial) const {
  Values point = drawn(trial);
  if (!discrete_) return point;
  auto untried = nearest_untried(program_.params, point, points_);
  return untried ? std::move(*untried) : point;
}

std::optional<Proposal> Halving::ask() const {
  for (std::size_t level = levels_.size() - 1; level-- > 0;)
    for (const auto& rungs : rungs_)
      if (const auto trial = promotable(rungs[level]))
        return proposal(*trial, trials_.at(*trial), level + 1);
  const auto drawn = static_cast<std::int64_t>(trials_.size());
  if (drawn < samples_) return proposal(drawn + 1, fresh(drawn + 1), bracket(drawn + 1));
  if (!open_.empty()) return std::nullopt;
  // Even with few trials, one has to get the whole budget.
  for (std::size_t level = levels_.size(); level-- > 0;) {
    const Rung::ByScore::value_type* best = nullptr;
    bool reached = false;
    for (const auto& rungs : rungs_) {
      reached = reached || !rungs[level].ended.empty();
      const auto& waiting = rungs[level].waiting;
      if (!waiting.empty() && (best == nullptr || *waiting.begin() < *best))
        best = &*waiting.begin();
    }
    if (best != nullptr) return proposal(best->second, trials_.at(best->second), level + 1);
    if (reached) break;
  }
  return std::nullopt;
}

}  // namespace berth::experiment
