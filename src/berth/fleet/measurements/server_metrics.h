// What vLLM's servers told Prometheus of themselves, as operating points: the load and the mean
// times of each server in each window of time. Names of the metrics: vllm/v1/metrics/loggers.py of
// 2026 and, of the time between tokens, before. Percentiles are not read: the histograms' buckets
// are too wide for them.
//
// Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "berth/base/result.h"
#include "berth/fleet/measurements/measured.h"

namespace berth::fleet {

inline constexpr std::size_t kMostMetricWindows = 2000;

/// Windows one behind the other, the first from `from_s` on; times in seconds since 1970.
struct MetricWindows {
  std::int64_t from_s = 0, window_s = 300;
  std::size_t count = 0;  // at most kMostMetricWindows
};

/// What is asked of the server: each is the path and the parameters of one range query,
/// "/api/v1/query_range?query=…".
std::vector<std::string> metric_queries(const MetricWindows& windows);

/// The points of each model, from the answers to metric_queries() in their order: of each server
/// ("instance", "engine") the windows in which it answered requests. Errors: invalid: an answer is
/// none, or says no, with its words.
Result<std::vector<Measured>> read_metrics(const MetricWindows& windows,
                                           std::span<const std::string> answers);

}  // namespace berth::fleet
