#include "berth/fleet/queueing/latencies.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

namespace berth::fleet {
namespace {

constexpr int kMostGroups = 12;
constexpr double kQuantilePrecision = 1e-3;  // of a quantile
constexpr double kNoTail = 1e-12;
constexpr int kMostLooks = 100;      // for one quantile
constexpr int kMostDoublings = 100;  // of the mean, until a quantile is below
constexpr double kManyPrompts = 30;
constexpr double kRare = 1e-3;  // a number of prompts that counts as the one before
constexpr double kEdge = 1e-5;  // of the probability, at either end, has no group of its own

double normal_above(double x) {
  return 0.5 * std::erfc(x / std::numbers::sqrt2);
}

/// P(x > ms) of a gamma distribution, by Wilson and Hilferty's approximation: its cube root is
/// nearly normal. Of a shape of 1 the quantiles that matter here are 1 % off, of 0.25 6 %.
double gamma_above(double mean_ms, double variance, double ms) {
  if (ms <= 0) return 1;
  if (mean_ms <= 0) return 0;
  if (variance <= 1e-9 * mean_ms * mean_ms) return mean_ms > ms ? 1 : 0;
  const double ninth = variance / (9 * mean_ms * mean_ms);
  return normal_above((std::cbrt(ms / mean_ms) - 1 + ninth) / std::sqrt(ninth));
}

/// P(x + e > ms) of a gamma distribution and an exponential one.
double sum_above(double mean_ms, double variance, double exponential_ms, double ms) {
  if (exponential_ms <= 0) return gamma_above(mean_ms, variance, ms);
  if (ms <= 0) return 1;
  const double shape = mean_ms * mean_ms / variance;
  const double rest = 1 - variance / mean_ms / exponential_ms;
  // Where the terms would cancel, e is hardly more than a part of x's tail.
  if (!(rest > 0.1) || shape > 1000)
    return gamma_above(mean_ms + exponential_ms, variance + exponential_ms * exponential_ms, ms);
  const double by_wait = std::exp(-ms / exponential_ms - shape * std::log(rest)) *
                         (1 - gamma_above(mean_ms, variance, ms * rest));
  return std::min(1.0, gamma_above(mean_ms, variance, ms) + by_wait);
}

/// The states 1 … N of the chain, in groups of neighbours.
struct Group {
  double weight = 0;
  double present = 0;  // on average
};
std::vector<Group> groups_of(const Queue::Weights& weights) {
  const auto& of = weights.of;
  std::size_t first = weights.first == 0 ? 1 : 0, last = of.size();
  for (double edge = 0; first < last && (edge += of[first]) < kEdge;) ++first;
  for (double edge = 0; first < last && (edge += of[last - 1]) < kEdge;) --last;
  const std::size_t width = (last - first + kMostGroups - 1) / kMostGroups;
  std::vector<Group> groups;
  for (std::size_t i = first; i < last; ++i) {
    if ((i - first) % width == 0) groups.emplace_back();
    groups.back().weight += of[i];
    groups.back().present += of[i] * (weights.first + static_cast<double>(i));
  }
  for (Group& group : groups) group.present /= group.weight > 0 ? group.weight : 1;
  return groups;
}

/// The least times that kPercentiles of the requests or tokens do not exceed. Between two times
/// ln P(x > ms) is nearly a straight line, so that few looks are enough; all quantiles share them.
template <class Above>
std::array<double, 4> percentiles_of(double mean_ms, const Above& above) {
  std::map<double, double> known{{0, 0}};  // ms: ln P(x > ms), falling
  const auto look = [&](double ms) {
    const double part = above(ms);
    return known.emplace(ms, std::log(part > kNoTail ? part : kNoTail)).first;
  };
  std::array<double, 4> found{};
  if (!(mean_ms > 0)) return found;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double wanted = std::log(1 - kPercentiles[i]);
    auto high = std::ranges::find_if(known, [&](const auto& at) { return at.second <= wanted; });
    double ms = std::max(mean_ms, std::prev(known.end())->first);
    for (int doubled = 0; high == known.end(); ms *= 2) {
      const auto at = look(ms);
      if (at->second <= wanted || ++doubled == kMostDoublings) high = at;
    }
    auto low = std::prev(high);
    bool is_straight = true;  // where the distribution has a step it is not
    for (int look_at = 0;
         look_at < kMostLooks && high->first - low->first > kQuantilePrecision * high->first;
         ++look_at) {
      const double width = high->first - low->first, least = kQuantilePrecision / 2 * high->first;
      const double part = is_straight ? (low->second - wanted) / (low->second - high->second) : 0.5;
      const auto at = look(low->first + std::clamp(part * width, least, width - least));
      (at->second <= wanted ? high : low) = at;
      is_straight = high->first - low->first < width / 2;
    }
    found[i] = high->first;
  }
  return found;
}

}  // namespace

Latencies::Latencies(const CalibratedQueue& queue, double rate) {
  const StepWork& work = queue.work();
  const Queue::Present present = queue.present_at(rate);
  const Operation o = queue.at(rate);
  const double served = o.throughput, all = 1 - present.loss;
  const Queue::Weights weights = queue.weights_at(rate);
  offset_ms_ = work.offset_ms;
  prompt_variation_ = work.prompt_variation;
  arrival_variation_ = work.arrival_variation;
  step_variance_ = work.other_ms_square;
  const bool has_full = weights.first + static_cast<int>(weights.of.size()) == queue.batch() + 1;

  // What an arrival finds: nobody, some, or no place.
  const double least = 1 - std::min(1.0, std::sqrt(prompt_variation_));
  double alone = present.alone, scale = 1;  // of the groups' weights, so that all is 1
  if (work.only_prefills) {
    const double busy = GatedPrefill<double>(work, 0, served).busy;
    const double some = all - present.alone - present.waits;
    alone = std::max(0.0, all * (1 - busy) - present.waits);
    scale = some > 0 ? (some + present.alone - alone) / some : 0;
  }
  const double alone_ms = work.prompt_ms + (work.chunks - 1) * work.alpha_ms;
  prefills_.push_back({alone / all, work.alpha_ms + least * alone_ms, (1 - least) * alone_ms,
                       alone_ms * alone_ms * prompt_variation_, 0});
  Queue::Weights free = weights;
  if (has_full) free.of.pop_back();
  for (const Group& group : groups_of(free))
    add_prefill({work, group.present, served}, group.weight / all * scale, 0, served);
  if (present.waits > 0)
    add_prefill({work, queue.batch() - 1.0, served}, present.waits / all,
                o.wait_ms * all / present.waits, served);

  // What a token finds: the more are present, the more tokens there are, and the fewer steps.
  if (work.decodes == 0) return;
  most_prompts_ = static_cast<int>(std::max(1.0, kBatchTokens / std::max(1.0, work.chunk_tokens)));
  for (const Group& group : groups_of(weights)) {
    const GatedPrefill<double> prefill(work, group.present, served);
    const double step_ms = prefill.mean_step_ms, piece_ms = work.prompt_ms / work.chunks;
    steps_.push_back({group.weight * group.present / step_ms, prefill.step_ms,
                      work.other_ms_square * group.present, served * step_ms * work.chunks,
                      piece_ms, piece_ms * piece_ms * prompt_variation_,
                      std::max(1.0, arrival_variation_ / (1 - prefill.part * prefill.part))});
  }
  double tokens = 0;
  for (const Steps& steps : steps_) tokens += steps.weight;
  for (Steps& steps : steps_) steps.weight /= tokens;
  if (work.only_decodes) first_gaps_ = 1 / work.decodes;
}

/// The variance of what GatedPrefill has the mean of: the rest of a step of which any moment is
/// as likely, the prompts that came during it, and the own. Steps are a shift and a gamma
/// distribution, which gives their third moment.
void Latencies::add_prefill(const GatedPrefill<double>& p, double weight, double wait_ms,
                            double served) {
  const double mean = p.mean_step_ms, variance = p.excess_ms * mean;
  const double beyond = mean - p.step_ms;
  const double third = mean * mean * mean + 3 * mean * variance +
                       (beyond > 0 ? 2 * variance * variance / beyond : 0);
  const double seen_square = mean > 0 ? third / mean : 0;  // of a step that an arrival sees
  const double r = p.part, prompt_square = p.prompt_ms * p.prompt_ms;
  const double rest =
      (1.0 / 3 + r + r * r) * seen_square - (0.5 + r) * (0.5 + r) * p.seen_ms * p.seen_ms;
  const double prompts =
      served * p.seen_ms * prompt_square * (arrival_variation_ + prompt_variation_);
  const double own = prompt_square * prompt_variation_;
  const double least = 1 - std::min(1.0, std::sqrt(prompt_variation_));
  const double shift_ms = p.step_ms + least * p.prompt_ms;
  prefills_.push_back(
      {weight, shift_ms, p.mean_ms() - shift_ms, std::max(0.0, rest) + prompts + own, wait_ms});
}

double Latencies::ttft_above(double ms) const {
  double sum = 0;
  for (const Prefills& p : prefills_)
    sum += p.weight * sum_above(p.mean_ms, p.variance, p.wait_ms, ms - offset_ms_ - p.shift_ms);
  return sum;
}

double Latencies::itl_above(double ms) const {
  double sum = 0;
  for (const Steps& s : steps_) {
    const double left_ms = ms - s.step_ms;
    const double size = s.dispersion - 1;
    if (s.prompts > kManyPrompts) {  // their sum is nearly normal, whatever their number's law
      const double each = s.prompt_variance + s.dispersion * s.prompt_ms * s.prompt_ms;
      sum += s.weight *
             gamma_above(s.prompts * s.prompt_ms, s.prompts * each + s.step_variance, left_ms);
      continue;
    }
    double p =
        size > 1e-9 ? std::exp(-s.prompts * std::log(s.dispersion) / size) : std::exp(-s.prompts);
    double above = p * normal_above(left_ms / std::sqrt(std::max(s.step_variance, 1e-12)));
    double left = 1 - p;
    for (int i = 1; left > 0; ++i) {
      // With as many prompts as a step takes, the others are left for the next.
      p *= ((i - 1) * size + s.prompts) / s.dispersion / i;
      if (i >= most_prompts_ || left - p < kRare) p = left;
      left -= p;
      above += p * gamma_above(i * s.prompt_ms, i * s.prompt_variance + s.step_variance, left_ms);
    }
    sum += s.weight * above;
  }
  return first_gaps_ > 0 ? sum + first_gaps_ * (ttft_above(ms) - sum) : sum;
}

Percentiles Latencies::percentiles() const {
  double ttft_ms = offset_ms_, itl_ms = 0;
  for (const Prefills& p : prefills_) ttft_ms += p.weight * (p.shift_ms + p.mean_ms + p.wait_ms);
  for (const Steps& s : steps_) itl_ms += s.weight * (s.step_ms + s.prompts * s.prompt_ms);
  return {percentiles_of(ttft_ms, [&](double ms) { return ttft_above(ms); }),
          percentiles_of(itl_ms, [&](double ms) { return itl_above(ms); })};
}

}  // namespace berth::fleet
