#include "berth/experiment/proposers/population.h"

#include <algorithm>
#include <cmath>

#include "berth/base/units.h"
#include "berth/experiment/proposers/halving.h"
#include "berth/experiment/proposers/sampler.h"
#include "berth/experiment/proposers/space.h"

namespace berth::experiment {
namespace {

constexpr std::size_t kOneOf = 5;    // so many are copied and one is replaced (Jaderberg et al.)
constexpr double kDrawnAnew = 0.25;  // the chance that an explored value is drawn, not moved
constexpr double kFactor = 1.25;     // by which a value on a log scale is moved
constexpr double kPart = 0.1;        // of a linear range, by which a value is moved
constexpr double kFailedScore = -HUGE_VAL;

/// To a side, and never so little that a whole number stays what it was.
std::string moved(const Parameter& parameter, const std::string& value, bool up) {
  const double part = part_of(parameter, value).value_or(0.5);
  const bool is_log = parameter.scale == Parameter::Scale::log;
  const double distance =
      std::max(is_log ? std::log(kFactor) / std::log(parameter.max / parameter.min) : kPart,
               share(parameter, part));
  return value_at(parameter, std::clamp(up ? part + distance : part - distance, 0.0, 1.0));
}

}  // namespace

std::optional<Member> member_of(const Budget& budget, std::string_view label) {
  const auto at = label.find('@');
  if (at == std::string_view::npos) return std::nullopt;
  const auto trial = parse_integer(label.substr(0, at));
  const auto all = levels(budget);
  for (std::size_t level = 0; level < all.size() && trial && *trial > 0; ++level)
    if (budget_text(budget, all[level]) == label.substr(at + 1)) return Member{*trial, level};
  return std::nullopt;
}

std::string label_of(const Budget& budget, Member member) {
  return fmt::format("{}@{}", member.trial, budget_text(budget, levels(budget)[member.level]));
}

std::vector<std::string> explored_by_default(const std::vector<Parameter>& params) {
  std::vector<std::string> names;
  for (const auto& parameter : params)
    if (parameter.choices.empty() && !parameter.integer) names.push_back(parameter.name);
  return names;
}

Population::Population(const Program& program)
    : program_(program),
      samples_(static_cast<std::size_t>(program.search.samples)),
      cut_(samples_ == 1 ? 0 : (samples_ + kOneOf - 1) / kOneOf),
      generations_(levels(*program.search.budget).size()) {}

void Population::tell(const TrialReport& report) {
  const Budget& budget = *program_.search.budget;
  const auto member = member_of(budget, report.trial.label);
  if (!member) return;  // none of ours
  Standing standing{.params = report.trial.params,
                    .over = report.state != TrialReport::State::open,
                    .score = report.scores.empty() ? kFailedScore : report.scores.front()};
  std::erase_if(standing.params, [&](const auto& value) {
    return value.first == budget.parameter || value.first == kParent;
  });
  generations_[member->level][member->trial] = std::move(standing);
}

Proposal Population::proposal(Member member, Values params, const std::string& parent) const {
  const Budget& budget = *program_.search.budget;
  params.emplace_back(budget.parameter, budget_text(budget, levels(budget)[member.level]));
  if (!parent.empty()) params.emplace_back(kParent, parent);
  return {label_of(budget, member), std::move(params)};
}

/// Values of the best, of which those that are explored are moved or drawn anew.
Values Population::explored(const Values& from, Member member) const {
  Rng rng(mix(program_.search.seed) ^
          mix(static_cast<std::uint64_t>(member.trial) * generations_.size() + member.level));
  Values values;
  for (const auto& parameter : program_.params) {
    const bool anew = rng.uniform() < kDrawnAnew, up = rng.uniform() < 0.5;
    const std::string drawn = draw(parameter, rng);
    if (!present(parameter, values)) continue;
    const auto* old = find_value(from, parameter.name);
    const bool changes =
        std::ranges::find(program_.search.explore, parameter.name) != program_.search.explore.end();
    const bool moves = changes && !anew && parameter.choices.empty();
    if (old == nullptr || (changes && anew))
      values.emplace_back(parameter.name, drawn);
    else
      values.emplace_back(parameter.name, moves ? moved(parameter, *old, up) : *old);
  }
  return values;
}

/// What the trial does at a level when it has ended the one before; nullopt: not known yet, or it
/// ends there.
std::optional<Proposal> Population::successor(std::int64_t trial, std::size_t level) const {
  const Generation& before = generations_[level - 1];
  const Budget& budget = *program_.search.budget;
  const Standing& own = before.at(trial);
  using Rank = std::pair<double, std::int64_t>;  // the best first
  const auto rank_of = [](const auto& each) { return Rank{-each.second.score, each.first}; };
  std::vector<Rank> ended;
  for (const auto& each : before)
    if (each.second.over) ended.push_back(rank_of(each));
  std::ranges::sort(ended);
  const auto behind = static_cast<std::size_t>(std::ranges::count_if(
      ended, [&](const Rank& rank) { return rank > Rank{-own.score, trial}; }));
  const Member next{trial, level};
  const bool failed = own.score == kFailedScore;
  const auto goes_on = [&] {
    return proposal(next, own.params, label_of(budget, {trial, level - 1}));
  };
  if (behind >= cut_ && !failed) return goes_on();
  if (ended.size() < samples_) return std::nullopt;
  // A failed one is replaced even where more than a fifth have failed, by one that has not.
  const auto sound = static_cast<std::size_t>(
      std::ranges::count_if(ended, [](const Rank& rank) { return rank.first != -kFailedScore; }));
  const std::size_t best = std::min(std::max<std::size_t>(cut_, 1), sound);
  if (best == 0) return std::nullopt;
  Rng rng(mix(program_.search.seed + 1) ^
          mix(static_cast<std::uint64_t>(trial) * generations_.size() + level));
  const auto& [score, donor] = ended[rng.below(best)];
  if (-score == own.score) return goes_on();  // it is no better
  return proposal(next, explored(before.at(donor).params, next),
                  label_of(budget, {donor, level - 1}));
}

std::optional<Proposal> Population::ask() const {
  const auto begun = static_cast<std::int64_t>(generations_[0].size()) + 1;
  if (begun <= program_.search.samples)
    return proposal({begun, 0}, quasi_random(program_.params, begun, program_.search.seed), "");
  for (std::size_t level = 1; level < generations_.size(); ++level)
    for (const auto& [trial, standing] : generations_[level - 1])
      if (standing.over && !generations_[level].contains(trial))
        if (auto next = successor(trial, level)) return next;
  return std::nullopt;
}

}  // namespace berth::experiment
