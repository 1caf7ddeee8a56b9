// Runs compared by the scores of their trials.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/base/result.h"
#include "berth/base/time.h"
#include "berth/engine/queries/shown_run.h"
#include "berth/run/state/context.h"
#include "berth/store/store.h"

namespace berth::engine {

/// Several runs compared by one metric.
struct Comparison {
  struct Run {
    ShownRun run;
    std::int64_t scored = 0;                ///< Trials that are done and have the metric.
    std::optional<store::TaskRecord> best;  ///< The best of these.
    std::optional<double> score, median;    ///< The score of the best, and the median of all.
    std::optional<Duration> trial;          ///< The median time of a trial.
    std::optional<Duration> took;           ///< The time of the run.
  };
  /// Parameters that all of the runs have tried, and the best score of each run with them.
  struct Shared {
    store::Values params;
    std::vector<double> scores;  ///< In the order of the runs.
  };
  std::string metric;
  bool maximize = true;
  std::vector<Run> runs;
  std::vector<Shared> shared;
};

/// Compares runs by a metric: `metric`, or if it is empty the metric of the goal that all runs with
/// a goal share; `maximize` overrides the goal's direction. Errors: not_found; invalid, if the runs
/// have different goals, or no goal and no metric is given.
Result<Comparison> compare(run::Context& context, const std::vector<std::string>& runs,
                           const std::string& metric, std::optional<bool> maximize);

}  // namespace berth::engine
