// Warm starts measured: a search that begins with the trials of an earlier run, against the same
// search without them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace berth::bench {

/// Writes the rows of a Markdown table: for each pair of an earlier run and a function, and each
/// method, the median regret of a cold start after 7, 22 and 47 trials and of a warm start after
/// 10, 25 and 50. Throws std::invalid_argument for an unknown method.
void write_warm_starts(std::uint64_t seeds, const std::vector<std::string>& methods);

}  // namespace berth::bench
