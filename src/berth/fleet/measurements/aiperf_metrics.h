// What the readers of aiperf's and genai-perf's JSON and CSV share. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "berth/fleet/measurements/measured.h"

namespace berth::fleet {

/// The factor from a unit, such as "sec" or "requests/sec", to ms or to the unit itself; nullopt:
/// the unit is not known.
std::optional<double> unit_scale(std::string_view unit);

struct AiperfCounts {
  std::optional<double> requests, errors;  // nullopt: not in the file
};

/// Sets the counts of requests and the mean concurrency of a point whose rate and duration are set.
/// Without a count the number of requests follows from these, if the duration is known.
void complete(OperatingPoint& point, const AiperfCounts& counts, double latency_ms);

/// Sets how requests were sent where the file does not say it but the tool's folder does, such as
/// "llama-openai-chat-concurrency16" or "…-request_rate4.0". A closed loop has to agree with the
/// measured concurrency.
void read_load_of_path(const std::string& path, OperatingPoint& point);

}  // namespace berth::fleet
