#include "berth/fleet/simulate/simulated_limit.h"

#include <algorithm>
#include <cmath>

#include "berth/fleet/queueing/calibrated_queue.h"
#include "berth/fleet/simulate/simulation.h"

namespace berth::fleet {
namespace {

constexpr double kNotMeasured = 0.1;  // part of the requests
constexpr double kFirstStep = 1.04;   // from the estimate: most limits are as near as that
constexpr double kFarthest = 100;     // below the estimate

/// Whether percentiles are within their targets, of which those that are 0 are none. `quantiles_of`
/// takes parts in 0..1.
template <class QuantilesOf>
bool within(const std::array<double, 4>& targets_ms, const QuantilesOf& quantiles_of) {
  std::vector<double> parts, most_ms;
  for (std::size_t i = 0; i < kPercentiles.size(); ++i)
    if (targets_ms[i] > 0) parts.push_back(kPercentiles[i]), most_ms.push_back(targets_ms[i]);
  if (parts.empty()) return true;
  const std::vector<double> found = quantiles_of(parts);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i] > most_ms[i]) return false;
  return true;
}

/// One replica under the same requests at whatever rate.
class RateTrial {
 public:
  RateTrial(const RateQuestion& question, const LimitSearch& search)
      : target_(question.target),
        most_loss_(most_loss(question.role)),
        deployment_(
            deployment_of(question.performance, question.batch, question.queue, question.role)),
        requests_(draw_requests(traffic_of(question.load, {}), search.requests, search.seed)) {
    give_role(requests_, question.role);
  }

  bool is_within_targets(double rate_per_s) const {
    const double gap_ms = 1000 / rate_per_s;
    const Outcome found =
        simulate(deployment_, requests_, gap_ms, steady_window(requests_, gap_ms, kNotMeasured), 0);
    if (found.lost_part() > most_loss_) return false;
    if (target_.ttft_ms > 0 && found.mean_ttft_ms() > target_.ttft_ms) return false;
    if (target_.itl_ms > 0 && found.itl.mean_ms() > target_.itl_ms) return false;
    return within(target_.percentiles.ttft_ms,
                  [&](const auto& parts) { return quantiles(found.ttft_ms, parts); }) &&
           within(target_.percentiles.itl_ms,
                  [&](const auto& parts) { return found.itl.quantiles_ms(parts); });
  }

 private:
  const Target target_;
  const double most_loss_;
  const Deployment deployment_;
  std::vector<Request> requests_;
};

}  // namespace

double simulated_limit(const RateQuestion& question, const LimitSearch& search) {
  Server server;
  server.max_queue = question.queue;
  const Demand demand = demand_of(demand_of(question.load, server, question.target), question.role);
  const CalibratedQueue queue(demand, question.performance, question.batch);
  const double end = (1 - kMargin) * queue.service_rate(question.batch) * 1000;
  const RateTrial replica(question, search);
  double low = std::min(question.estimate_per_s, end);
  double high = low;
  double step = kFirstStep;
  if (replica.is_within_targets(low)) {
    do {
      if (high >= end) return end;
      low = high;
      high = std::min(end, high * step);
      step *= step;
    } while (replica.is_within_targets(high));
  } else {
    do {
      if (low * kFarthest < question.estimate_per_s) return 0;
      high = low;
      low /= step;
      step *= step;
    } while (!replica.is_within_targets(low));
  }
  while (high > low * (1 + search.precision)) {
    const double middle = std::sqrt(low * high);
    (replica.is_within_targets(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace berth::fleet
