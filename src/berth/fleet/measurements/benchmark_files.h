// Files that benchmark tools write, read by what they hold, not by what they are called.
// docs/how-to/fit-a-server.md lists the tools. Pure; a file that is cut or wrong is an Error that
// names the file, the line or key, what was wanted and what was found. Every count has a bound.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"
#include "berth/fleet/measurements/measured.h"

namespace berth::fleet {

inline constexpr std::size_t kMostPoints = 10'000;            // of a file
inline constexpr std::size_t kMostPointRequests = 1'000'000;  // of a point
inline constexpr std::size_t kMostRows = 5'000'000;           // of a table
inline constexpr double kMostMs = 1e9;                        // of any time

/// How much a file tells of a run. Tools write several files of one run; the best one is enough.
enum class Detail : std::uint8_t { table, summary, requests };

struct BenchmarkFile {
  std::string_view tool;  // "vLLM", "guidellm", "aiperf", "rows"
  Detail detail = Detail::summary;
  std::vector<Measured> measured{};
  std::vector<std::string> notes{};
};

/// Reads a file. Errors: not_found: it is of no known tool; invalid: it is, and wrong.
Result<BenchmarkFile> read_benchmark_file(const std::string& name, std::string_view text);

}  // namespace berth::fleet
