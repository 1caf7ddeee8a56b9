#include "berth/fleet/autoscale/load_estimate.h"

#include <algorithm>
#include <cmath>

#include "berth/base/text.h"
#include "berth/fleet/autoscale/autoscaler.h"
#include "berth/fleet/model/system_view.h"
#include "berth/fleet/queueing/calibrated_queue.h"
#include "berth/fleet/queueing/sizing.h"

namespace berth::fleet {
namespace {

constexpr double kMsPerMinute = 60'000;
constexpr double kTokenWeight = 0.3;  // of the mean tokens that were measured last
constexpr double kMostAhead = 2;      // no trend is believed beyond twice the load
constexpr double kForget = 0.9;       // of what was learnt of the drift, each time
constexpr double kDriftStep = 0.01;   // equal questions are simulated once
constexpr double kDriftPrior = 3;     // as if so many measurements had confirmed the parameters,
constexpr double kDriftPart = 0.1;    // each with this part of alpha
constexpr double kFewestRunning = 1;  // requests a replica, below which ITL tells little of beta
constexpr double kWaitingToTell = 2;  // requests a replica that wait, where it is full
constexpr double kNearlyWhole = 0.05;
constexpr double kBelievedWithin = 3;  // intervals, in which a rate has to be measured again

struct FigureBound {
  const char* what;
  std::optional<double> Live::* figure;
  double most;
};
constexpr FigureBound kFigureBounds[] = {
    {"the rate", &Live::arrivals_per_min, 1e9},
    {"the rate of what is served", &Live::served_per_min, 1e9},
    {"the tokens of prompts", &Live::in_tokens, kMostTokens},
    {"the tokens of answers", &Live::out_tokens, kMostTokens},
    {"the TTFT in ms", &Live::ttft_ms, 1e9},
    {"the ITL in ms", &Live::itl_ms, 1e7},
    {"the requests that run", &Live::running, 1e9},
    {"the requests that wait", &Live::waiting, 1e9},
    {"the replicas", &Live::replicas, kMostReplicas},
};

/// By how much the rates grow a second, less how far chance may have moved that: the slope of the
/// straight line of the least squares, less its standard error. 0: nothing that is certain.
double growth_of(const std::deque<std::pair<double, double>>& rates, double now_s) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  for (const auto& [at_s, rate] : rates) {
    const double s = at_s - now_s;
    n += 1, x += s, y += rate, xx += s * s, xy += s * rate, yy += rate * rate;
  }
  const double spread = xx - x * x / n, both = xy - x * y / n;
  if (n < 3 || !(spread > 0)) return 0;
  const double slope = both / spread;
  const double rest = std::max(0.0, yy - y * y / n - slope * both);
  return std::max(0.0, slope - std::sqrt(rest / (n - 2) / spread));
}

}  // namespace

std::string doubts_of(const Live& live) {
  if (!live.trouble.empty()) return "no data: " + live.trouble;
  for (const FigureBound& bound : kFigureBounds)
    if (const auto& value = live.*bound.figure; value && !(*value >= 0 && *value <= bound.most))
      return fmt::format("absurd: {} measured as {:.6g}", bound.what, *value);
  return live.arrivals_per_min ? "" : "no data: no rate of requests is reported";
}

std::string LoadEstimate::take(double now_s, const Live& live, const AutoscalerOptions& options) {
  if (auto doubts = doubts_of(live); !doubts.empty()) return doubts;
  const double rate = *live.arrivals_per_min;
  double before = rates_.empty() ? rate : 0;  // the greatest of late: a pause is no reason to doubt
  for (const auto& [at_s, believed] : rates_) before = std::max(before, believed);
  if (rate > options.most_jump * std::max(before, 1.0)) {
    const bool is_again = doubted_ &&
                          now_s - doubted_->first <= kBelievedWithin * options.interval_s &&
                          rate <= options.most_jump * doubted_->second;
    if (!is_again) {
      doubted_ = {now_s, rate};
      return fmt::format("absurd: {:.1f}/min after {:.1f}/min; believed if it is measured again",
                         rate, before);
    }
    doubted_.reset();
  }
  const auto smooth = [&](double& known, const std::optional<double>& seen) {
    if (seen && *seen > 0) known = rates_.empty() ? *seen : known + kTokenWeight * (*seen - known);
  };
  smooth(load_.in_tokens, live.in_tokens);
  smooth(load_.out_tokens, live.out_tokens);
  load_.arrivals_per_min = rate;
  rates_.emplace_back(now_s, rate);
  const double first_s = now_s - std::max(options.startup_s, 3 * options.interval_s);
  while (rates_.front().first < first_s) rates_.pop_front();
  return "";
}

double LoadEstimate::forecast_per_min(double now_s, const Live& live,
                                      const AutoscalerOptions& options) const {
  const double rate = load_.arrivals_per_min;
  const double ahead_s = options.startup_s + options.interval_s;
  const double ahead = std::min(rate + growth_of(rates_, now_s) * ahead_s, kMostAhead * rate);
  const double waiting_per_min = live.waiting.value_or(0) / ahead_s * 60;
  return (ahead + waiting_per_min) * (1 + options.headroom);
}

void LoadEstimate::learn(double now_s, const Live& live, const Demand& demand,
                         const Performance& performance, int batch, bool is_steady,
                         const AutoscalerOptions& options) {
  learn_drift(live, demand, performance, batch);
  learn_batch(now_s, live, batch, is_steady, options);
}

/// Beta and gamma as the measured ITL has them: with X requests a replica and served requests that
/// bring prompts, an iteration takes alpha + f·(X·o + λ·s·ITL), o and s by calibrated_queue.h. The
/// multiple f is found by least squares, in which older measurements fade.
void LoadEstimate::learn_drift(const Live& live, const Demand& demand,
                               const Performance& performance, int batch) {
  if (!live.itl_ms || !live.running || !live.served_per_min || !live.replicas ||
      !(*live.replicas >= 1))
    return;
  const double running = *live.running / *live.replicas;
  if (running < kFewestRunning || running > kMostBatch || !(load_.out_tokens > 1)) return;
  const StepWork work = CalibratedQueue(demand, performance, std::max(1, batch)).work();
  const double served_per_ms = *live.served_per_min / *live.replicas / kMsPerMinute;
  const double expected = running * work.other_ms + served_per_ms * work.prompt_ms * *live.itl_ms;
  const double found = *live.itl_ms - performance.alpha_ms;
  if (!(expected > 0) || !std::isfinite(expected * expected) || !std::isfinite(expected * found))
    return;
  drift_product_ = kForget * drift_product_ + expected * found;
  drift_square_ = kForget * drift_square_ + expected * expected;
}

double LoadEstimate::drift(const Performance& performance, const AutoscalerOptions& options) const {
  if (!(drift_square_ > 0)) return 1;
  // Of what is small beside alpha a measured ITL tells little.
  const double prior = kDriftPrior * std::pow(kDriftPart * performance.alpha_ms, 2);
  const double drift = (prior + drift_product_) / (prior + drift_square_);
  const double most = 1 + options.most_drift;
  return std::clamp(std::round(drift / kDriftStep) * kDriftStep, 1 / most, most);
}

/// Where requests wait, what runs is what a replica takes at once, whatever the document allows:
/// but not while some replicas have only just begun.
void LoadEstimate::learn_batch(double now_s, const Live& live, int batch, bool is_steady,
                               const AutoscalerOptions& options) {
  if (!live.waiting || !live.running || !live.replicas || !(*live.replicas >= 1)) return;
  const bool waits = *live.waiting >= kWaitingToTell * *live.replicas;
  if (waits) waited_s_ = now_s;
  if (now_s - waited_s_ > options.hold_s) full_at_ = 0;
  waiting_for_ = waits && is_steady ? waiting_for_ + 1 : 0;
  const double running = std::ceil(*live.running / *live.replicas - kNearlyWhole);
  const int now = static_cast<int>(std::clamp<double>(running, 1, kMostBatch));
  if (full_at_ > 0)
    full_at_ = std::max(full_at_, now);
  else if (waiting_for_ >= 2 && now < batch)
    full_at_ = now;
}

}  // namespace berth::fleet
