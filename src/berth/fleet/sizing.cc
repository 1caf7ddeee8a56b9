#include "berth/fleet/sizing.h"

#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>

namespace berth::fleet {
namespace {

constexpr double kPrecision = 1e-8;  // of a rate

/// How far beyond its limit a figure is, in logarithms, which are straighter lines; <= 0: within.
double excess(double found, double most) {
  return most > 0 ? std::log(std::max(found / most, 1e-9)) : -1;
}

struct Excess {
  double itl, ttft, loss;
  double worst() const { return std::max({itl, ttft, loss}); }
  Binding binding() const {
    return itl == worst() ? Binding::itl : ttft == worst() ? Binding::ttft : Binding::loss;
  }
};

Excess excess_at(const Queue& queue, const Limits& limits, double rate) {
  const Operation o = queue.at(rate);
  return {excess(o.itl_ms, limits.target.itl_ms), excess(o.ttft_ms, limits.target.ttft_ms),
          limits.most_loss < 1 ? excess(o.loss, limits.most_loss) : -1};
}

Sizing size_reference(const Demand& demand, const Performance& performance) {
  const double tokens =
      static_cast<double>(performance.max_batch) * static_cast<double>(performance.at_tokens);
  Sizing sizing;
  sizing.batch = demand.max_batch;
  if (sizing.batch == 0)
    sizing.batch =
        static_cast<int>(std::clamp<double>(std::floor(tokens / demand.out_tokens), 1, kMostBatch));
  const Queue queue = queue_of(demand, performance, sizing.batch);
  const Range range = reference_range(queue);
  Rate found = greatest_rate(queue, {demand.target}, range.low, range.high);
  if (found.rate == 0) return refused(found.binding == Binding::itl ? Refusal::itl : Refusal::ttft);
  if (demand.target.tps > 0 && kTpsPart * range.high < found.rate)
    found = {kTpsPart * range.high, Binding::tps};
  sizing.binding = found.binding;
  sizing.rate = queue.at(found.rate).throughput;
  return sizing;
}

}  // namespace

Queue queue_of(const Demand& demand, const Performance& performance, int batch) {
  return Queue({demand.in_tokens, demand.out_tokens, performance.alpha_ms, performance.beta_ms,
                performance.gamma_ms, batch, demand.max_queue});
}

Rate greatest_rate(const Queue& queue, const Limits& limits, double low, double high) {
  const Excess at_high = excess_at(queue, limits, high);
  if (at_high.worst() <= 0) return {high, Binding::throughput};
  const Excess at_low = excess_at(queue, limits, low);
  if (at_low.worst() > 0) return {0, at_low.binding()};
  if (at_low.worst() == 0) return {low, at_low.binding()};
  Binding binding = at_high.binding();  // of the least rate that is known to be too great
  const auto worst = [&](double rate) {
    const Excess at = excess_at(queue, limits, rate);
    if (at.worst() >= 0) binding = at.binding();
    return at.worst();
  };
  const auto close = [](double a, double b) { return b - a <= kPrecision * b; };
  std::uintmax_t evaluations = 200;  // it halves the range at least every third
  const auto [below, above] = boost::math::tools::toms748_solve(
      worst, low, high, at_low.worst(), at_high.worst(), close, evaluations);
  BERTH_ASSERT(evaluations < 200);
  return {below, binding};
}

Range reference_range(const Queue& queue) {
  const double high = (1 - kMargin) * queue.service_rate(queue.parameters().batch);
  return {std::min(kMargin * queue.service_rate(1), high), high};
}

Sizing size_replica(const Demand& demand, const Performance& performance, QueueModel model) {
  if (performance.alpha_ms + performance.beta_ms + performance.gamma_ms == 0)
    return refused(Refusal::zero_performance);
  return model == QueueModel::reference ? size_reference(demand, performance)
                                        : size_calibrated(demand, performance);
}

Sized replicas_for(const Sizing& sizing, const Demand& demand, const Performance& performance,
                   QueueModel model, double rate, int least) {
  if (model == QueueModel::calibrated)
    return replicas_calibrated(sizing, demand, performance, rate, least);
  return {std::max<double>(std::ceil(rate / sizing.rate), least), sizing.batch};
}

}  // namespace berth::fleet
