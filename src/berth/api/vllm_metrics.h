// What vLLM tells Prometheus of itself, as the control loop wants it: one query a server, and what
// its answer means. The names are those of vLLM's v1 metrics, older and newer ones.
//
// Pure.
#pragma once

#include <span>
#include <string>

#include "berth/api/prometheus.h"
#include "berth/fleet/autoscale/autoscaler.h"

namespace berth::api {

/// An expression whose samples have a label `figure`. `selector` is what stands between the braces
/// of a metric: model_name="llama". Rates are over the last `window_s`, which should span two
/// scrapes or more.
std::string live_query(const std::string& selector, double window_s);

/// Arrivals are the requests that ended and those by which more are in work. What is missing or
/// NaN is not told.
fleet::Live live_of(std::span<const Sample> samples);

/// The selector for a model: model_name="…", with what needs it escaped.
std::string selector_of(const std::string& model);

}  // namespace berth::api
