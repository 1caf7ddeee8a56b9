#include "berth/fleet/measurements/streamed_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace berth::fleet {
namespace {

constexpr double kFewer = 0.95;    // gaps per token, below which chunks have several tokens
constexpr double kMostOdd = 0.02;  // of the requests, which may be so by retokenization
// Gaps shorter than this part of their mean are not iterations, and this part of all makes bursts.
constexpr double kTiny = 0.05, kBursts = 0.2;

double tokens_after_first(const RequestTimes& request) {
  return std::max(0.0, request.out_tokens - 1);
}

void use_means(std::vector<RequestTimes>& requests) {
  for (auto& request : requests) {
    if (request.gaps_ms.empty() || request.out_tokens <= 1) continue;
    request.itl_ms = std::accumulate(request.gaps_ms.begin(), request.gaps_ms.end(), 0.0) /
                     tokens_after_first(request);
    request.gaps_ms.clear();
  }
}

struct GapCounts {
  double requests = 0, chunked = 0;  // those with gaps, and those with several tokens a chunk
  double gaps = 0, tokens = 0, sum_ms = 0;
};

GapCounts count_gaps(const std::vector<RequestTimes>& requests) {
  GapCounts counts;
  for (const auto& request : requests) {
    if (request.gaps_ms.empty() || request.out_tokens <= 1) continue;
    const auto gaps = static_cast<double>(request.gaps_ms.size());
    ++counts.requests;
    if (gaps + 1 < kFewer * tokens_after_first(request)) ++counts.chunked;
    counts.gaps += gaps;
    counts.tokens += tokens_after_first(request);
    for (const double gap : request.gaps_ms) counts.sum_ms += gap;
  }
  return counts;
}

/// The part of the gaps that are too short for an iteration.
double tiny_part(const std::vector<RequestTimes>& requests, const GapCounts& counts) {
  const double tiny_ms = kTiny * counts.sum_ms / counts.gaps;
  double tiny = 0;
  for (const auto& request : requests)
    if (request.out_tokens > 1)
      tiny += static_cast<double>(
          std::ranges::count_if(request.gaps_ms, [&](double gap) { return gap < tiny_ms; }));
  return tiny / counts.gaps;
}

}  // namespace

std::optional<std::string> correct_gaps(const std::string& name,
                                        std::vector<RequestTimes>& requests) {
  const GapCounts counts = count_gaps(requests);
  if (counts.gaps == 0) return std::nullopt;
  std::string why;
  if (counts.chunked > kMostOdd * counts.requests)
    why = fmt::format("a chunk has {:.2g} tokens on average, as with speculative decoding",
                      counts.tokens / counts.gaps);
  else if (const double tiny = tiny_part(requests, counts); tiny > kBursts)
    why = fmt::format(
        "tokens arrive in bursts: {:.0f} % of the times between them are below {} % "
        "of their mean",
        100 * tiny, 100 * kTiny);
  else
    return std::nullopt;
  use_means(requests);
  return fmt::format("{}: {}; the mean time per token of each request is fitted", name, why);
}

TokenTime token_time(const std::string& name, const StreamedTimes& times) {
  constexpr double kFarApart = 1.25, kApart = 1.05;  // chunk time over token time
  const double ratio = times.mean_tpot_ms > 0 ? times.mean_itl_ms / times.mean_tpot_ms : 1;
  if (times.mean_itl_ms <= 0) return {times.mean_tpot_ms, std::nullopt};
  if (ratio > kFarApart || (ratio > kApart && times.tokens_per_step > kApart))
    return {times.mean_tpot_ms,
            fmt::format("{}: the mean time between chunks is {:.4g} ms, that per output token "
                        "{:.4g} ms: a chunk has several tokens, as with speculative decoding; the "
                        "time per token is fitted",
                        name, times.mean_itl_ms, times.mean_tpot_ms)};
  if (times.tokens_per_step > kApart && times.mean_tpot_ms <= 0)
    return {times.mean_itl_ms / times.tokens_per_step,
            fmt::format("{}: the engine generates {:.3g} tokens a step; the time between chunks is "
                        "divided by that",
                        name, times.tokens_per_step)};
  constexpr double kFarBelow = 0.5;
  if (times.median_itl_ms > 0 && times.median_itl_ms < kFarBelow * times.mean_itl_ms)
    return {times.mean_itl_ms,
            fmt::format(
                "{}: the median time between tokens, {:.3g} ms, is far below the mean, {:.4g} ms: "
                "tokens arrive in bursts, or long prompts delay the others; the mean is fitted",
                name, times.median_itl_ms, times.mean_itl_ms)};
  return {times.mean_itl_ms, std::nullopt};
}

}  // namespace berth::fleet
