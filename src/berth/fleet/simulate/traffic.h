// Requests to an inference server, as a simulation takes them: drawn at random, or read from the
// trace of a real one. docs/explanation/fleet-simulator.md.
//
// Pure; any thread. The same arguments give the same requests, however many threads there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "berth/base/result.h"
#include "berth/fleet/queueing/length_histogram.h"

namespace berth::fleet {

inline constexpr std::size_t kMostRequests = 20'000'000;  // of one history

struct Request {
  double arrival = 0;  // drawn: in mean gaps since the start; of a trace: in ms
  std::int32_t in_tokens = 0, out_tokens = 0;
  bool operator==(const Request&) const = default;
};

/// How many tokens a request has. All are at least 1, except where the mean is below: a mean of 0
/// is 0 tokens.
struct Lengths {
  enum class Kind : std::uint8_t { fixed, geometric, lognormal, histogram };
  Kind kind = Kind::fixed;
  double mean = 0;  // fixed, and not whole: of both whole numbers beside it as many as it takes
  double cv = 0;    // lognormal: standard deviation / mean, before it is rounded
  LengthHistogram histogram{};  // stretched to the mean; what is not whole as of fixed lengths
};

struct Traffic {
  Lengths in, out;
  /// Standard deviation / mean of the gaps between arrivals: 0 regular, 1 Poisson, else gamma.
  double arrival_cv = 1;
};

/// Errors: invalid, with the field: not finite, negative, beyond 10⁷ tokens, a cv beyond 100, no
/// histogram.
Status check(const Traffic& traffic);

/// Random numbers that do not depend on one another, so that a change of one distribution, of the
/// rate or of the routing leaves all else as it was (common random numbers).
enum class Stream : std::uint8_t { arrivals, in_tokens, out_tokens, routing, history };
/// The seed of a stream. Neighbouring seeds have nothing in common: they are hashed.
std::uint64_t seed_of(std::uint64_t seed, Stream stream, std::uint64_t number = 0);

/// `count` requests one mean gap apart. Precondition: check(traffic).
std::vector<Request> draw_requests(const Traffic& traffic, std::size_t count, std::uint64_t seed);

/// Each request goes to one of several at random, in their order: to the i-th with the probability
/// parts[i]. Precondition: there are parts, and they add up to 1.
std::vector<std::vector<Request>> divide(std::vector<Request> requests,
                                         std::span<const double> parts, std::uint64_t seed);

/// Reads the text of a trace: CSV whose first line names the columns, in any order; `seconds`,
/// `in_tokens` and `out_tokens` are read. Arrivals are in ms after the first. Errors: invalid,
/// "name:line:column: wanted …", also where a time is before the one in the line above.
Result<std::vector<Request>> read_trace(std::string_view name, std::string_view text);

}  // namespace berth::fleet
