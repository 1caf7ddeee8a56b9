#include "berth/experiment/stopping/early_stop.h"

#include <algorithm>
#include <cmath>

#include "berth/experiment/stopping/curve.h"

namespace berth::experiment {
namespace {

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

void EarlyStopper::begin(std::int64_t trial) {
  steps_.erase(trial);
  running_.insert(trial);
}

void EarlyStopper::end(std::int64_t trial, End end) {
  running_.erase(trial);
  if (end == End::failed) steps_.erase(trial);
  if (end != End::completed) return;
  ++completed_;
  longest_ = std::max(longest_, steps_[trial].size());
}

std::optional<std::string> EarlyStopper::report(std::int64_t trial, double value) {
  Steps& own = steps_[trial];
  if (!goal_.maximize) value = -value;
  const auto count = static_cast<double>(own.size());
  const Step before = own.empty() ? Step{value, value, value} : own.back();
  own.push_back({value, std::max(before.best, value), (before.mean * count + value) / (count + 1)});
  const auto step = static_cast<std::int64_t>(own.size());
  if (step <= policy_.warmup || (step - policy_.warmup - 1) % policy_.every != 0) return {};
  if (completed_ == 0 && running_.size() == 1) return {};
  const auto others = others_at(trial, own.size() - 1);
  const auto best = std::ranges::max_element(
      others, {}, [&](const Steps* other) { return (*other)[own.size() - 1].best; });
  if (best == others.end() || own.back().best >= (**best)[own.size() - 1].best) return {};
  auto because = judge(own, others);
  if (because)
    *because = fmt::format("early_stop: {} ended it at report {}: {}",
                           EarlyStop::kPolicyNames.name(policy_.policy), step, *because);
  return because;
}

bool EarlyStopper::has_recovered(std::int64_t trial) const {
  const auto found = steps_.find(trial);
  if (found == steps_.end()) return false;
  const Steps& own = found->second;
  const auto others = others_at(trial, own.size() - 1);
  if (!others.empty()) {
    const bool is_best = std::ranges::all_of(others, [&](const Steps* other) {
      return own.back().best >= (*other)[own.size() - 1].best;
    });
    return is_best || !judge(own, others);
  }
  // No other has come as far: it has to be better than all that the others have reported.
  return std::ranges::all_of(steps_, [&](const auto& other) {
    return other.second.empty() || own.back().best > other.second.back().best ||
           other.first == trial;
  });
}

/// Those that came as far.
EarlyStopper::Others EarlyStopper::others_at(std::int64_t trial, std::size_t step) const {
  Others others;
  for (const auto& [other, steps] : steps_)
    if (other != trial && steps.size() > step) others.push_back(&steps);
  return others;
}

std::optional<std::string> EarlyStopper::judge(const Steps& own, const Others& others) const {
  switch (policy_.policy) {
    case EarlyStop::Policy::median: return by_median(own, others);
    case EarlyStop::Policy::bandit: return by_slack(own, others);
    case EarlyStop::Policy::truncation: return by_rank(own, others);
    case EarlyStop::Policy::curve: return by_curve(own, others);
  }
  return {};
}

std::string EarlyStopper::text(double value) const {
  return fmt::format("{:.6g}", goal_.maximize ? value : -value);
}

/// The best that it had so far against what the others had on average by then.
std::optional<std::string> EarlyStopper::by_median(const Steps& own, const Others& others) const {
  std::vector<double> means;
  for (const auto* other : others) means.push_back((*other)[own.size() - 1].mean);
  const double median = median_of(std::move(means));
  if (own.back().best >= median) return {};
  return fmt::format(
      "its best {} in {} reports is {}; the median of the averages of {} other trial{} "
      "by then is {}",
      goal_.metric, own.size(), text(own.back().best), others.size(), others.size() == 1 ? "" : "s",
      text(median));
}

std::optional<std::string> EarlyStopper::by_slack(const Steps& own, const Others& others) const {
  double best = own.back().best;
  for (const auto* other : others) best = std::max(best, (*other)[own.size() - 1].best);
  const double bound = best - policy_.slack * std::fabs(best);
  if (own.back().best >= bound) return {};
  return fmt::format(
      "its best {} in {} reports is {}; another trial had {} by then, and {} is the "
      "bound with a slack of {:g}",
      goal_.metric, own.size(), text(own.back().best), text(best), text(bound), policy_.slack);
}

std::optional<std::string> EarlyStopper::by_rank(const Steps& own, const Others& others) const {
  const auto better = std::ranges::count_if(
      others, [&](const Steps* other) { return (*other)[own.size() - 1].best > own.back().best; });
  const auto all = static_cast<double>(others.size() + 1);
  const double kept = std::ceil(all * (1 - policy_.part) - 1e-9);
  if (static_cast<double>(better) < kept) return {};
  return fmt::format(
      "its best {} in {} reports is {}, number {} of the {} trials that came this far; the best "
      "{:g} continue",
      goal_.metric, own.size(), text(own.back().best), better + 1, all, kept);
}

/// Where its reports lead to, against the best value that any other that came as far has had.
std::optional<std::string> EarlyStopper::by_curve(const Steps& own, const Others& others) const {
  const std::int64_t last = policy_.steps > 0 ? policy_.steps : static_cast<std::int64_t>(longest_);
  if (last <= static_cast<std::int64_t>(own.size())) return {};
  double best = own.back().best;
  for (const auto* other : others) best = std::max(best, other->back().best);
  std::vector<double> values;
  for (const auto& step : own) values.push_back(step.value);
  const auto chance = chance_to_exceed(values, last, best);
  if (!chance || *chance >= policy_.probability) return {};
  return fmt::format(
      "after {} reports of {} its probability of exceeding the best is {:.2g} (best {}, within {})",
      own.size(), goal_.metric, *chance, text(best), last);
}

}  // namespace berth::experiment
