// What berth fit reads of a Prometheus server.
#pragma once

#include <string>
#include <vector>

#include "berth/base/result.h"
#include "berth/fleet/measurements/measured.h"
#include "berth/os/env.h"

namespace berth::engine {

/// As the command line has them, "" where it does not. Times are "2026-11-21T05:04:03Z", or ages:
/// "2h".
struct MetricsWanted {
  std::string url, from, to, window;
};

/// The windows of all models that are in the metrics of the server. Errors: usage; io, interrupted;
/// invalid: what it answers; not_found: no server had requests then.
Result<std::vector<fleet::Measured>> read_prometheus(os::Env& env, const MetricsWanted& wanted);

}  // namespace berth::engine
