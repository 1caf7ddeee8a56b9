#include "berth/fleet/simulate/served_trace.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace berth::fleet {
namespace {

constexpr double kMsInSecond = 1000, kWorst_s = 300;
constexpr double kLeastSpan_s = 1;  // for the rate of what arrives at the very end

void judge(std::span<const Request> trace, std::span<const double> ttft_ms, Attainment& found) {
  const double length_s = trace.back().arrival / kMsInSecond;
  std::int64_t within = 0, within_now = 0, now = 0;
  double begin_s = 0;
  const auto end_part = [&](double next_s) {
    const double part = now > 0 ? static_cast<double>(within_now) / static_cast<double>(now) : 1;
    if (part < found.worst_within) {
      const double span_s = std::max(kLeastSpan_s, std::min(kWorst_s, length_s - begin_s));
      found.worst_within = part;
      found.worst_at_s = begin_s;
      found.worst_per_min = static_cast<double>(now) / span_s * 60;
    }
    within_now = now = 0;
    begin_s = next_s;
  };
  for (std::size_t i = 0; i < ttft_ms.size(); ++i) {
    const double at_s = trace[i].arrival / kMsInSecond;
    if (at_s >= begin_s + kWorst_s) end_part(std::floor(at_s / kWorst_s) * kWorst_s);
    const bool is_within = ttft_ms[i] <= found.within_ms;  // not where it is NaN: it was lost
    within += is_within ? 1 : 0, within_now += is_within ? 1 : 0, ++now;
  }
  end_part(0);
  found.within = static_cast<double>(within) / static_cast<double>(ttft_ms.size());
}

}  // namespace

int serving_at(int first, std::span<const WantedReplicas> wanted, double at_s) {
  int least = std::numeric_limits<int>::max();
  for (auto w = std::ranges::upper_bound(wanted, at_s, {}, &WantedReplicas::at_s);
       w != wanted.begin();) {
    --w;
    least = std::min(least, w->replicas);
    if (w->up_s <= at_s) return least;
  }
  return std::min(least, first);
}

std::vector<ReplicaChange> changes_of(int first, std::span<const WantedReplicas> wanted) {
  std::vector<double> times;
  for (const auto& each : wanted) times.push_back(each.at_s), times.push_back(each.up_s);
  std::ranges::sort(times);
  std::vector<ReplicaChange> changes;
  int before = first;
  for (const double at_s : times)
    if (const int now = serving_at(first, wanted, at_s); now != before)
      changes.push_back({at_s * kMsInSecond, before = now});
  return changes;
}

Attainment attainment_of(const Outcome& outcome, std::span<const Request> trace,
                         std::span<const double> ttft_ms, const Target& target) {
  Attainment found{.requests = std::ssize(trace),
                   .lost = std::ssize(trace) - std::ssize(outcome.ttft_ms),
                   .mean_ttft_ms = outcome.mean_ttft_ms(),
                   .mean_itl_ms = outcome.itl.mean_ms(),
                   .within_ms = target.ttft_ms};
  std::ranges::copy(quantiles(outcome.ttft_ms, kPercentiles), found.percentiles.ttft_ms.begin());
  std::ranges::copy(outcome.itl.quantiles_ms(kPercentiles), found.percentiles.itl_ms.begin());
  for (const double ms : target.percentiles.ttft_ms)
    if (ms > 0) found.within_ms = ms;
  if (found.within_ms > 0) judge(trace, ttft_ms, found);
  return found;
}

}  // namespace berth::fleet
