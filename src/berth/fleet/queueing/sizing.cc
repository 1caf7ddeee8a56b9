#include "berth/fleet/queueing/sizing.h"

#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>

#include "berth/fleet/queueing/calibrated_queue.h"
#include "berth/fleet/queueing/reference_queue.h"

namespace berth::fleet {
namespace {

constexpr double kRatePrecision = 1e-8;  // of a rate
constexpr double kShort = 1e-9;  // so far a rate that is not looked at stays below the one computed
constexpr int kSteps = 8;        // before the range is halved instead

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

Excess excess_of(const Operation& o, const Limits& limits) {
  const Target& target = limits.target;
  return {excess(o.itl_ms, target.itl_ms), excess(o.ttft_ms, target.ttft_ms),
          limits.most_loss < 1 ? excess(o.loss, limits.most_loss) : -1};
}

/// How far ahead, in ln λ, a figure that is a straight line in logarithms meets its limit;
/// infinite: never.
double ahead(double found, double growth, double most) {
  if (most <= 0 || found <= 0) return HUGE_VAL;
  const double distance = std::log(most / found);
  if (growth > 0) return distance * found / growth;
  return distance >= 0 ? HUGE_VAL : -HUGE_VAL;
}

/// The same of TTFT, in which the wait is a straight line in logarithms and the rest one as it is.
double ttft_ahead(const Operation& o, const Growth& growth, double most) {
  if (most <= 0) return HUGE_VAL;
  const double rest = o.ttft_ms - o.wait_ms, rest_growth = growth.ttft_ms - growth.wait_ms;
  if (!(o.wait_ms > 0 && growth.wait_ms > 0 && rest_growth > 0))
    return ahead(o.ttft_ms, growth.ttft_ms, most);
  // The sum is convex, so that steps that begin beyond its root come down to it.
  const double slope = growth.wait_ms / o.wait_ms;
  double x = 0;
  if (o.ttft_ms < most)
    x = std::min((most - rest) / rest_growth, std::log((most - rest) / o.wait_ms) / slope);
  for (int i = 0; i < 20; ++i) {
    const double wait = o.wait_ms * std::exp(slope * x);
    const double step = (rest + rest_growth * x + wait - most) / (rest_growth + slope * wait);
    x -= step;
    if (std::abs(step) < 1e-12) break;
  }
  return x;
}

/// Steps from one rate to where its figures and their growth make the limits expect the next.
class RateSearch {
 public:
  RateSearch(const Queue& queue, const Limits& limits, double low, double high)
      : queue_(queue), limits_(limits), low_(low), high_(high), below_{low}, above_{high} {}

  Rate from(double rate) {
    double before = 0;  // the step before
    for (int i = 0; i < kSteps; ++i) {
      Growth growth;
      const bool within = look(rate, &growth);
      if (within && rate == high_) return at_end();
      if (!within && rate == low_) return {0, 0, binding_};
      const auto [step, binding] = step_from(growth);
      const double next = std::clamp(rate * std::exp(step), below_.rate, above_.rate);
      if (std::isnan(next)) break;
      // A step leaves the square of its length times what bends the line: at least 1, the step
      // before shows how much, and at the first it is taken to be a lot.
      const double off = std::abs(step);
      const double bend = before > 0 ? std::max(1.0, off / (before * before)) : 100;
      if (10 * bend * off * off < kShort / 2 && next > low_ && next < high_)
        return {next * (1 - kShort), (last_.throughput + step * growth.throughput) * (1 - kShort),
                binding};
      if ((next == below_.rate && below_.known) || (next == above_.rate && above_.known)) break;
      before = off;
      rate = next;
    }
    return between();
  }

 private:
  struct End {
    double rate;
    double excess = 0;
    bool known = false;
  };

  /// Whether the limits hold at a rate; the range of what is not known becomes narrower.
  bool look(double rate, Growth* growth = nullptr) {
    last_ = queue_.at(rate, growth);
    const Excess at = excess_of(last_, limits_);
    const bool within = at.worst() <= 0;
    (within ? below_ : above_) = {rate, at.worst(), true};
    if (!within) binding_ = at.binding();
    return within;
  }

  Rate at_end() const { return {high_, last_.throughput, Binding::throughput}; }

  std::pair<double, Binding> step_from(const Growth& growth) const {
    const Target& target = limits_.target;
    const double itl = ahead(last_.itl_ms, growth.itl_ms, target.itl_ms);
    const double ttft = ttft_ahead(last_, growth, target.ttft_ms);
    const double loss =
        limits_.most_loss < 1 ? ahead(last_.loss, growth.loss, limits_.most_loss) : HUGE_VAL;
    if (itl <= ttft && itl <= loss) return {itl, Binding::itl};
    return ttft <= loss ? std::pair{ttft, Binding::ttft} : std::pair{loss, Binding::loss};
  }

  /// Where the figures are no smooth lines: between the closest rates that are known.
  Rate between() {
    if (!above_.known && look(high_)) return at_end();
    if (!below_.known && !look(low_)) return {0, 0, binding_};
    double found = below_.rate;
    if (below_.excess < 0) {
      const auto worst = [&](double rate) {
        const Excess at = excess_of(queue_.at(rate, nullptr), limits_);
        if (at.worst() >= 0) binding_ = at.binding();
        return at.worst();
      };
      const auto close = [](double a, double b) { return b - a <= kRatePrecision * b; };
      std::uintmax_t evaluations = 200;  // it halves the range at least every third
      found = boost::math::tools::toms748_solve(worst, below_.rate, above_.rate, below_.excess,
                                                above_.excess, close, evaluations)
                  .first;
      BERTH_ASSERT(evaluations < 200);
    }
    return {found, queue_.at(found, nullptr).throughput, binding_};
  }

  const Queue& queue_;
  const Limits& limits_;
  const double low_, high_;
  End below_, above_;  // the greatest rate known to be within, the least known not to be
  Binding binding_ = Binding::none;  // at above_
  Operation last_;
};

ReferenceQueue reference_queue_of(const Demand& demand, const Performance& performance, int batch) {
  return ReferenceQueue({demand.in_tokens, demand.out_tokens, performance.alpha_ms,
                         performance.beta_ms, performance.gamma_ms, batch, demand.max_queue});
}

Sizing size_reference(const Demand& demand, const Performance& performance) {
  const double tokens =
      static_cast<double>(performance.max_batch) * static_cast<double>(performance.at_tokens);
  Sizing sizing;
  sizing.batch = demand.max_batch;
  if (sizing.batch == 0)
    sizing.batch =
        static_cast<int>(std::clamp<double>(std::floor(tokens / demand.out_tokens), 1, kMostBatch));
  const ReferenceQueue queue = reference_queue_of(demand, performance, sizing.batch);
  const Range range = reference_range(queue);
  Rate found = greatest_rate(queue, {demand.target}, range.low, range.high);
  if (found.rate == 0) return refused(found.binding == Binding::itl ? Refusal::itl : Refusal::ttft);
  if (demand.target.tps > 0 && kTpsPart * range.high < found.rate)
    found = {kTpsPart * range.high, queue.at(kTpsPart * range.high).throughput, Binding::tps};
  sizing.binding = found.binding;
  sizing.rate = found.throughput;
  return sizing;
}

}  // namespace

Demand demand_of(const Load& load, const Server& server, const Target& target) {
  return {load.in_tokens, load.out_tokens, server.max_batch, server.max_queue,  target,
          load.in_cv,     load.out_cv,     load.arrival_cv,  load.in_histogram, load.out_histogram};
}

Demand demand_of(Demand demand, Role role) {
  demand.role = role;
  demand.target.percentiles = targets_of(demand.target.percentiles, role);
  if (role == Role::prefill) demand.target.itl_ms = 0;
  if (role == Role::decode) demand.target.ttft_ms = 0;
  return demand;
}

Percentiles targets_of(Percentiles targets, Role role) {
  if (role == Role::prefill) targets.itl_ms = {};
  if (role == Role::decode) targets.ttft_ms = {};
  return targets;
}

Operation operation_at(const Demand& demand, const Performance& performance, int batch, double rate,
                       QueueModel model) {
  return model == QueueModel::reference ? reference_queue_of(demand, performance, batch).at(rate)
                                        : CalibratedQueue(demand, performance, batch).at(rate);
}

void set_figures(Allocation& allocation, const Demand& demand, const Performance& performance,
                 double rate, QueueModel model) {
  const Operation o = operation_at(demand, performance, allocation.batch, rate, model);
  allocation.itl_ms = o.itl_ms;
  allocation.ttft_ms = o.ttft_ms;
  allocation.utilisation = o.utilisation;
  if (model == QueueModel::calibrated && demand.target.has_percentiles())
    allocation.percentiles = percentiles_at(demand, performance, allocation.batch, rate);
  if (demand.role == Role::prefill) allocation.itl_ms = 0;
  if (demand.role == Role::decode) allocation.ttft_ms = 0;
  if (allocation.percentiles)
    allocation.percentiles = targets_of(*allocation.percentiles, demand.role);
}

Rate greatest_rate(const Queue& queue, const Limits& limits, double low, double high) {
  const double guess = queue.unlimited_rate(limits.target.itl_ms, limits.target.ttft_ms);
  return greatest_rate(queue, limits, low, high, guess);
}

Rate greatest_rate(const Queue& queue, const Limits& limits, double low, double high,
                   double guess) {
  return RateSearch(queue, limits, low, high).from(std::clamp(guess, low, high));
}

Range reference_range(const Queue& queue) {
  const double high = (1 - kMargin) * queue.service_rate(queue.batch());
  return {std::min(kMargin * queue.service_rate(1), high), high};
}

Sizing size_replica(const Demand& demand, const Performance& performance, QueueModel model) {
  if (performance.alpha_ms + performance.beta_ms + performance.gamma_ms == 0)
    return refused(Refusal::zero_performance);
  return model == QueueModel::reference ? size_reference(demand, performance)
                                        : size_calibrated(demand, performance);
}

double replicas_for(const Sizing& sizing, QueueModel model, double rate) {
  if (sizing.refusal != Refusal::none) return HUGE_VAL;
  // The least batch must not cost a replica more.
  return model == QueueModel::reference ? std::ceil(rate / sizing.rate)
                                        : std::ceil(rate / sizing.best_rate * (1 - kRateRounding));
}

int batch_for(const Sizing& sizing, const Demand& demand, const Performance& performance,
              QueueModel model, double rate) {
  return model == QueueModel::reference ? sizing.batch
                                        : batch_calibrated(sizing, demand, performance, rate);
}

}  // namespace berth::fleet
