// The calibrated model's choice of the batch. Over the batch a replica's rate rises while too small
// a batch makes requests wait, has a flat peak, and falls by a little where ITL binds; so from the
// largest batch that can be of use we walk down to the rising side, and then close in from both
// sides. Most steps ask only whether a rate can be held, which is one look at the queue.
#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>

#include "berth/base/result.h"
#include "berth/fleet/queueing/calibrated_queue.h"
#include "berth/fleet/queueing/latencies.h"

namespace berth::fleet {
namespace {

constexpr double kNearlyBest = 0.99;  // the least batch that takes so much of the best rate will do
constexpr double kWorthwhile = 1e-4;  // a better batch must be better by this part

constexpr double kTailPrecision = 1e-6;  // of a rate that a percentile limits

template <class Choice>
Choice nth(Choice first, std::size_t i) {
  return static_cast<Choice>(static_cast<std::size_t>(first) + i);
}

struct Best {
  int batch = 1;
  double rate = 0;
  Binding binding = Binding::none;
};

/// How far beyond its target the worst percentile is, in ln of the part that is later; <= 0:
/// within.
struct Tail {
  double excess = -HUGE_VAL;
  Binding binding = Binding::none;
};
Tail worst_tail(const CalibratedQueue& queue, const Percentiles& targets, double rate) {
  const Latencies latencies(queue, rate);
  Tail worst;
  const auto look = [&](Binding first, std::size_t i, double above) {
    const double excess = std::log(std::max(above / (1 - kPercentiles[i]), 1e-9));
    if (excess > worst.excess) worst = {excess, nth(first, i)};
  };
  for (std::size_t i = 0; i < kPercentiles.size(); ++i) {
    if (targets.ttft_ms[i] > 0)
      look(Binding::ttft_p50, i, latencies.ttft_above(targets.ttft_ms[i]));
    if (targets.itl_ms[i] > 0) look(Binding::itl_p50, i, latencies.itl_above(targets.itl_ms[i]));
  }
  return worst;
}

/// The greatest rate in [low, most.rate] within the targets for percentiles, where `most` is within
/// the others.
Rate within_percentiles(const CalibratedQueue& queue, const Percentiles& targets, double low,
                        const Rate& most) {
  const Tail high = worst_tail(queue, targets, most.rate);
  if (high.excess <= 0) return most;
  const Tail least = worst_tail(queue, targets, low);
  if (least.excess > 0) return {0, 0, least.binding};
  Binding binding = high.binding;
  const auto excess = [&](double rate) {
    const Tail at = worst_tail(queue, targets, rate);
    if (at.excess >= 0) binding = at.binding;
    return at.excess;
  };
  const auto close = [](double a, double b) { return b - a <= kTailPrecision * b; };
  std::uintmax_t evaluations = 200;  // it halves the range at least every third
  const double found = boost::math::tools::toms748_solve(excess, low, most.rate, least.excess,
                                                         high.excess, close, evaluations)
                           .first;
  BERTH_ASSERT(evaluations < 200);
  return {found, queue.at(found).throughput, binding};
}

bool is_of_itl(Binding binding) {
  return binding == Binding::itl || binding >= Binding::itl_p50;
}

class BatchSearch {
 public:
  BatchSearch(const Demand& demand, const Performance& performance)
      : demand_(demand),
        performance_(performance),
        limits_{demand.target, most_loss(demand.role)} {}

  CalibratedQueue queue(int batch) const { return {demand_, performance_, batch}; }

  /// The end of the range of rates: short of the service rate.
  double end_of(const CalibratedQueue& q) const {
    return (1 - kMargin) * (demand_.target.tps > 0 ? kTpsPart : 1.0) * q.service_rate(q.batch());
  }

  bool holds(int batch, double rate) const {
    const CalibratedQueue q = queue(batch);
    if (rate > end_of(q)) return false;
    const Operation o = q.at(rate);
    const Target& t = limits_.target;
    return o.loss <= limits_.most_loss && (t.itl_ms == 0 || o.itl_ms <= t.itl_ms) &&
           (t.ttft_ms == 0 || o.ttft_ms <= t.ttft_ms) &&
           (!t.has_percentiles() || worst_tail(q, t.percentiles, rate).excess <= 0);
  }

  /// The greatest rate within all limits.
  Rate greatest(const CalibratedQueue& q, double low, double guess) const {
    const Rate found = greatest_rate(q, limits_, low, end_of(q), guess);
    if (found.rate == 0 || !limits_.target.has_percentiles()) return found;
    return within_percentiles(q, limits_.target.percentiles, low, found);
  }

  /// The least batch in (too_small, enough] that holds the rate, as `enough` does.
  int least_batch(int too_small, int enough, double rate) const {
    while (enough - too_small > 1) {
      const int middle = too_small + (enough - too_small) / 2;
      (holds(middle, rate) ? enough : too_small) = middle;
    }
    return enough;
  }

  Best best_at(const CalibratedQueue& q, const Rate& found) const {
    const bool tps = found.binding == Binding::throughput && demand_.target.tps > 0;
    return {q.batch(), found.rate, tps ? Binding::tps : found.binding};
  }

  /// The best batch up to `most`, and the greatest one below it that is known to be too small.
  std::pair<Best, int> search(int most) const {
    const CalibratedQueue largest = queue(most);
    const double low = std::min(kMargin * queue(1).service_rate(1), end_of(largest));
    const double guess = largest.unlimited_rate(limits_.target.itl_ms, limits_.target.ttft_ms);
    Best best = best_at(largest, greatest(largest, low, guess));
    if (best.rate == 0) return {best, 0};
    int too_small = 0;
    for (int batch = most * 2 / 3; batch > 0; batch = batch * 2 / 3) {
      if (improve(best, batch) || holds(batch, kNearlyBest * best.rate)) continue;
      too_small = batch;
      break;
    }
    // The peak is between; steps that halve find it. Where ITL binds it is to the left: a smaller
    // batch makes more wait, and fewer slow one another. Where requests are lost it is to the
    // right.
    for (int step = best.batch / 3; step > 0; step /= 2) {
      if (best.binding != Binding::loss && best.batch - step > too_small &&
          improve(best, best.batch - step))
        continue;
      if (!is_of_itl(best.binding) && best.batch + step <= most) improve(best, best.batch + step);
    }
    return {best, too_small};
  }

 private:
  bool improve(Best& best, int batch) const {
    const double better = best.rate * (1 + kWorthwhile);
    const CalibratedQueue q = queue(batch);
    if (better > end_of(q)) return false;
    // Looked for from the rate that would do, so that one look is enough if it does not.
    const Rate found = greatest(q, better, better);
    if (found.rate == 0) return false;
    best = best_at(q, found);
    return true;
  }

  const Demand& demand_;
  const Performance& performance_;
  const Limits limits_;
};

}  // namespace

Refusal refusal_of(Binding binding) {
  if (binding >= Binding::ttft_p50)
    return nth(Refusal::ttft_p50,
               static_cast<std::size_t>(binding) - static_cast<std::size_t>(Binding::ttft_p50));
  return binding == Binding::itl    ? Refusal::itl
         : binding == Binding::ttft ? Refusal::ttft
                                    : Refusal::loss;
}

bool is_of_percentile(Refusal refusal) {
  return refusal >= Refusal::ttft_p50;
}

Binding binding_of(Refusal refusal) {
  BERTH_ASSERT(is_of_percentile(refusal));
  return nth(Binding::ttft_p50,
             static_cast<std::size_t>(refusal) - static_cast<std::size_t>(Refusal::ttft_p50));
}

Sizing size_calibrated(const Demand& demand, const Performance& performance) {
  const double tokens =
      static_cast<double>(performance.max_batch) * static_cast<double>(performance.at_tokens);
  const int told = demand.max_batch > 0 ? demand.max_batch : kMostBatch;
  // A batch is required where the memory is unknown.
  const double fit =
      tokens > 0 ? std::floor(tokens / (demand.in_tokens + demand.out_tokens))
                 : std::max(1, demand.max_batch > 0 ? demand.max_batch : performance.max_batch);
  if (fit < 1) return refused(Refusal::memory);
  const int ceiling = static_cast<int>(std::min<double>(told, fit));
  const BatchSearch batches(demand, performance);
  // What is beyond the tokens of a step only makes requests wait for one another; where they are
  // prefilled alone they do nothing else, and had better wait than be lost.
  const int useful =
      demand.role == Role::prefill ? ceiling : batches.queue(ceiling).work().within_tokens;
  const auto [best, too_small] = batches.search(std::min(ceiling, useful));
  if (best.rate == 0) return refused(refusal_of(best.binding));
  Sizing sizing;
  sizing.best_batch = best.batch;
  sizing.best_rate = best.rate;
  sizing.binding = best.binding;
  sizing.rate = kNearlyBest * best.rate;
  sizing.batch = batches.least_batch(std::min(too_small, best.batch - 1), best.batch, sizing.rate);
  return sizing;
}

Percentiles percentiles_at(const Demand& demand, const Performance& performance, int batch,
                           double rate) {
  return Latencies(CalibratedQueue(demand, performance, batch), rate).percentiles();
}

int batch_calibrated(const Sizing& sizing, const Demand& demand, const Performance& performance,
                     double rate) {
  if (rate <= sizing.rate) return sizing.batch;
  return BatchSearch(demand, performance).least_batch(sizing.batch, sizing.best_batch, rate);
}

}  // namespace berth::fleet
