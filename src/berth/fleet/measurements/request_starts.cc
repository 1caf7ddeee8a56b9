#include "berth/fleet/measurements/request_starts.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <random>

namespace berth::fleet {
namespace {

double last_end_ms(const std::vector<RequestTimes>& requests) {
  double last = 0;
  for (const auto& request : requests) last = std::max(last, request.end_ms());
  return last;
}

/// Sets pauses as numpy's legacy generator with the seed 0 draws them from gamma(1, 1/rate):
/// −ln(1 − u)/rate, where u has 53 bits of two numbers of the Mersenne twister.
void start_as_poisson(std::vector<RequestTimes>& requests, double rate_per_s) {
  std::mt19937 generator(0);
  double at_ms = 0;
  for (auto& request : requests) {
    request.start_ms = at_ms;
    const auto high = static_cast<double>(generator() >> 5);
    const auto low = static_cast<double>(generator() >> 6);
    at_ms -= kSecondMs * std::log1p(-(high * 67108864 + low) / 9007199254740992) / rate_per_s;
  }
}

/// Sets starts so that the next request starts when one of `max_concurrency` ends.
void start_as_closed_loop(std::vector<RequestTimes>& requests, double max_concurrency) {
  std::priority_queue<double, std::vector<double>, std::greater<>> ends;
  for (auto& request : requests) {
    request.start_ms = 0;
    if (static_cast<double>(ends.size()) >= max_concurrency) {
      request.start_ms = ends.top();
      ends.pop();
    }
    ends.push(request.end_ms());
  }
}

}  // namespace

bool find_starts(std::vector<RequestTimes>& requests, const OperatingPoint& point, Pauses pauses) {
  if (requests.empty() || !point.offered_per_s) return false;
  if (!std::isfinite(*point.offered_per_s))
    start_as_closed_loop(requests, point.max_concurrency.value_or(HUGE_VAL));
  else if (pauses == Pauses::numpy_seed_0 && !point.max_concurrency)
    start_as_poisson(requests, *point.offered_per_s);
  else
    return false;
  const double left_ms = kSecondMs * point.duration_s - last_end_ms(requests);
  const double allowed_ms = std::max(500.0, 0.005 * kSecondMs * point.duration_s);
  return std::abs(left_ms) <= allowed_ms;
}

}  // namespace berth::fleet
