// The numbers of runs, tasks, the store and this machine that monitoring reads.
//
// Threads: one. Failure: as of the store, and as machine_report().
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/engine/context.h"
#include "berth/engine/machines/machine.h"

namespace berth::engine {

/// A run that is under way or ended within the last hour. The times are of the last attempt of each
/// task.
struct RunMetrics {
  store::RunRecord record;
  std::vector<double> waited_s = {}, ran_s = {};
  std::map<std::string_view, std::int64_t> failures = {};  ///< Failed tasks by cause.
};

struct Metrics {
  std::map<std::string, std::int64_t> runs = {};  ///< All runs by state.
  store::Counts tasks = {};                       ///< Of all runs.
  std::vector<double> run_seconds = {};           ///< The durations of all runs that ended.
  std::vector<RunMetrics> recent = {};
  /// The commits since all processes left the store, and its size in bytes; nullopt: unknown, such
  /// as in PostgreSQL.
  std::optional<std::uint32_t> commits = {};
  std::optional<std::int64_t> store_bytes = {};
  MachineReport machine = {};
};
Result<Metrics> metrics_of(Context& context);

}  // namespace berth::engine
