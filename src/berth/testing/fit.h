// A server for the tests of fits: requests go through iterations token by token, as fit.h says what
// these take.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "berth/base/rng.h"
#include "berth/fleet/fit/fit.h"

namespace berth::fleet::testing {

struct SimulatedLoad {
  double rate_per_s = 1;    // of random arrivals; looked at without max_concurrency only
  int max_concurrency = 0;  // requests side by side of a closed loop; 0: none
  int requests = 1000;
  double in_tokens = 300, out_tokens = 100;  // means of lengths, which are exponential, to 5 times
  bool fixed = false;                        // the mean, unless all are alike
  bool gaps = false;                         // keep each gap between tokens
  double jitter = 0;                         // standard deviation of an iteration, as a part
};

/// What clients saw, in the order of their starts.
inline std::vector<RequestTimes> simulate(const FitParameters& parameters,
                                          const SimulatedLoad& load, Rng& rng) {
  struct Active {
    std::size_t request;
    double tokens = 0, last_ms = 0;
  };
  std::vector<RequestTimes> all(static_cast<std::size_t>(load.requests));
  double at_ms = 0;
  for (auto& request : all) {
    const auto length = [&](double mean) {
      const double drawn = load.fixed ? mean : std::min(5.0, -std::log1p(-rng.uniform())) * mean;
      return std::max(2.0, std::round(drawn));
    };
    request.in_tokens = length(load.in_tokens);
    request.out_tokens = length(load.out_tokens);
    if (load.max_concurrency == 0)
      at_ms -= std::log1p(-rng.uniform()) * kSecondMs / load.rate_per_s;
    request.start_ms = at_ms;
  }
  std::size_t next = 0;
  std::vector<Active> active;
  std::vector<std::size_t> late;
  double now_ms = 0;
  const double offset_ms = parameters.ms[Term::ttft_offset];
  while (next < all.size() || !active.empty() || !late.empty()) {
    if (active.empty() && load.max_concurrency == 0) now_ms = std::max(now_ms, all[next].start_ms);
    // Of a closed loop the next request comes when one ends, and so just misses the iteration that
    // begins then, unless the server is idle.
    std::vector<std::size_t> joining = std::exchange(late, {});
    const bool idle = active.empty() && joining.empty();
    const auto room = [&] {
      return load.max_concurrency == 0 || active.size() + joining.size() + late.size() <
                                              static_cast<std::size_t>(load.max_concurrency);
    };
    while (next < all.size() && room() &&
           (load.max_concurrency > 0 || all[next].start_ms <= now_ms)) {
      if (load.max_concurrency > 0) all[next].start_ms = now_ms;
      (load.max_concurrency > 0 && !idle ? late : joining).push_back(next++);
    }
    Observation iteration{.bare_iterations = joining.empty() ? 1.0 : 0.0,
                          .prefill_iterations = joining.empty() ? 0.0 : 1.0};
    for (const auto& each : active) {
      iteration.decoding += 1;
      iteration.context_tokens += all[each.request].in_tokens + each.tokens;
    }
    for (const std::size_t i : joining) {
      iteration.prefill_tokens += all[i].in_tokens;
      iteration.context_tokens += all[i].in_tokens;
    }
    double noise = -6;
    for (int i = 0; i < 12; ++i) noise += rng.uniform();
    now_ms += predicted_ms(parameters, iteration) * (1 + load.jitter * noise);
    for (auto& each : active) {
      auto& request = all[each.request];
      request.itl_ms += (now_ms - each.last_ms) / (request.out_tokens - 1);
      if (load.gaps) request.gaps_ms.push_back(static_cast<float>(now_ms - each.last_ms));
      each.last_ms = now_ms;
      each.tokens += 1;
    }
    for (const std::size_t i : joining) {
      all[i].ttft_ms = now_ms - all[i].start_ms + offset_ms;
      active.push_back({i, 1, now_ms});
    }
    std::erase_if(active,
                  [&](const Active& each) { return each.tokens >= all[each.request].out_tokens; });
  }
  std::ranges::stable_sort(all, {}, &RequestTimes::start_ms);
  return all;
}

/// The load as a benchmark tool would tell of it, with its requests or without.
inline OperatingPoint simulated_point(const FitParameters& parameters, const SimulatedLoad& load,
                                      Rng& rng, bool with_requests) {
  OperatingPoint point;
  point.name = "simulated";
  auto requests = simulate(parameters, load, rng);
  for (const auto& request : requests)
    point.duration_s = std::max(point.duration_s, request.end_ms() / kSecondMs);
  if (load.max_concurrency > 0)
    point.max_concurrency = load.max_concurrency;
  else
    point.offered_per_s = load.rate_per_s;
  summarize(point, requests);
  if (with_requests) point.timeline = std::move(requests);
  return point;
}

}  // namespace berth::fleet::testing
