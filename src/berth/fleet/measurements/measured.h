// What benchmark tools measured of an inference server, in one form whatever the tool: single
// iterations of the engine, or operating points with their requests. Times in ms, lengths in
// tokens.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "berth/base/result.h"

namespace berth::fleet {

inline constexpr double kSecondMs = 1000;

struct Iteration {
  double decoding = 0;        // requests that take one token each
  double prefill_tokens = 0;  // tokens of prompts
  double context_tokens = 0;  // tokens that all of these attend to
  double ms = 0;
  bool operator==(const Iteration&) const = default;
};

/// One request, as its client saw it.
struct RequestTimes {
  double start_ms = 0;  // since any moment that is the same for all of a point
  double in_tokens = 0, out_tokens = 0;
  double ttft_ms = 0;            // from the start to the first token
  double itl_ms = 0;             // the mean between two tokens; 0 where there is one
  std::vector<float> gaps_ms{};  // between two tokens each; empty where only the mean is known
  double end_ms() const;
};

/// The mean of a figure over requests, its second moment, and percentiles; 0: not known.
struct MeasuredFigures {
  double mean = 0, square = 0;
  double p95 = 0, p99 = 0;
  bool operator==(const MeasuredFigures&) const = default;
};

/// A server under one load.
struct OperatingPoint {
  std::string name;                       // of the file, and the place in it
  double rate_per_s = 0;                  // of requests that were completed
  std::optional<double> offered_per_s;    // what the tool wanted to send; infinite: all at once
  std::optional<double> max_concurrency;  // requests side by side, of a closed loop
  double concurrency = 0;  // requests side by side, on average over the time; 0: not known
  double duration_s = 0;
  std::optional<std::int64_t> requests, errors;  // completed and failed; nullopt: not said
  MeasuredFigures in_tokens, out_tokens, ttft_ms, itl_ms;
  /// All requests in the order of their start, or none where their starts are not known.
  std::vector<RequestTimes> timeline;
  /// Later the server had requests that are not in the timeline.
  double complete_until_ms = std::numeric_limits<double>::infinity();
};

/// All that is known of a model on an accelerator.
struct Measured {
  std::string model, accelerator;  // "": not said
  int accelerators = 0;            // of one replica; 0: not said
  std::vector<Iteration> iterations;
  std::vector<OperatingPoint> points;
};

/// Fills in what follows from the requests: their number and figures (itl_ms.mean is that of
/// tokens, its percentiles are of requests), and where the duration is known rate and concurrency.
void summarize(OperatingPoint& point, const std::vector<RequestTimes>& requests);

}  // namespace berth::fleet
