// Corrects the times of streamed tokens where a chunk is not one iteration of the engine: with
// speculative decoding a chunk has several tokens, and buffers on the way deliver tokens in bursts.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/fleet/measurements/measured.h"

namespace berth::fleet {

/// Replaces the gaps of all requests by their mean per token where the gaps are not iterations.
/// Returns a note that says why; nullopt if the gaps are iterations or there are none.
std::optional<std::string> correct_gaps(const std::string& name,
                                        std::vector<RequestTimes>& requests);

/// Times between two chunks and between two tokens of a summary, in ms; 0: not in the file.
struct StreamedTimes {
  double mean_itl_ms = 0, median_itl_ms = 0;  // between chunks
  double mean_tpot_ms = 0;                    // between tokens
  double tokens_per_step = 0;                 // as the engine reports it, 1 without speculation
};
/// The mean time between two tokens, and a note where it is not that between two chunks or where
/// the median is implausible.
struct TokenTime {
  double ms = 0;
  std::optional<std::string> note;
};
TokenTime token_time(const std::string& name, const StreamedTimes& times);

}  // namespace berth::fleet
