// The calibrated model's choice of the batch. Over the batch a replica's rate rises while too small
// a batch makes requests wait, has a flat peak, and falls by a little where ITL binds; so from the
// largest batch that can be of use we walk down to the rising side, and then close in from both
// sides. Most steps ask only whether a rate can be held, which is one look at the queue.
#include <algorithm>
#include <cmath>

#include "berth/fleet/calibrated_queue.h"

namespace berth::fleet {
namespace {

constexpr double kMostLoss = 0.01;    // part of the requests that may find no place
constexpr double kNearlyBest = 0.99;  // the least batch that takes so much of the best rate will do
constexpr double kWorthwhile = 1e-4;  // a better batch must be better by this part

struct Best {
  int batch = 1;
  double rate = 0;
  Binding binding = Binding::none;
};

class BatchSearch {
 public:
  BatchSearch(const Demand& demand, const Performance& performance)
      : demand_(demand), performance_(performance), limits_{demand.target, kMostLoss} {}

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
    return o.loss <= kMostLoss && (t.itl_ms == 0 || o.itl_ms <= t.itl_ms) &&
           (t.ttft_ms == 0 || o.ttft_ms <= t.ttft_ms);
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
    const double end = end_of(largest);
    Best best = best_at(
        largest,
        greatest_rate(largest, limits_, std::min(kMargin * queue(1).service_rate(1), end), end));
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
      if (best.binding != Binding::itl && best.batch + step <= most)
        improve(best, best.batch + step);
    }
    return {best, too_small};
  }

 private:
  bool improve(Best& best, int batch) const {
    const double better = best.rate * (1 + kWorthwhile);
    const CalibratedQueue q = queue(batch);
    const double end = end_of(q);
    if (better > end) return false;
    // Looked for from the rate that would do, so that one look is enough if it does not.
    const Rate found = greatest_rate(q, limits_, better, end, better);
    if (found.rate == 0) return false;
    best = best_at(q, found);
    return true;
  }

  const Demand& demand_;
  const Performance& performance_;
  const Limits limits_;
};

}  // namespace

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
  const auto [best, too_small] =
      batches.search(std::min(ceiling, batches.queue(ceiling).largest_of_use()));
  if (best.rate == 0)
    return refused(best.binding == Binding::itl    ? Refusal::itl
                   : best.binding == Binding::ttft ? Refusal::ttft
                                                   : Refusal::loss);
  Sizing sizing;
  sizing.best_batch = best.batch;
  sizing.best_rate = best.rate;
  sizing.binding = best.binding;
  sizing.rate = kNearlyBest * best.rate;
  sizing.batch = batches.least_batch(std::min(too_small, best.batch - 1), best.batch, sizing.rate);
  return sizing;
}

Sized replicas_calibrated(const Sizing& sizing, const Demand& demand,
                          const Performance& performance, double rate, int least) {
  Sized sized;
  // The least batch must not cost a replica more.
  sized.replicas =
      std::max<double>(std::ceil(rate / sizing.best_rate * (1 - kRateRounding)), least);
  const double part = rate / sized.replicas;
  sized.batch =
      part <= sizing.rate
          ? sizing.batch
          : BatchSearch(demand, performance).least_batch(sizing.batch, sizing.best_batch, part);
  return sized;
}

}  // namespace berth::fleet
