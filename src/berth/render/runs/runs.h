// Runs, one run with its tasks, and the best trial, as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "berth/base/time.h"
#include "berth/engine/queries/queries.h"
#include "berth/render/table.h"

namespace berth::render {

struct RunList {
  std::vector<engine::ShownRun> runs;
  Wall now;
  std::string if_empty;  ///< The text of an empty list.
};
std::string to_text(const RunList& list, const View& view);
std::string to_json(const RunList& list);  ///< {"version":1,"runs":[{…}]}

/// A run with the tasks to show.
struct RunView {
  const engine::RunDetails& run;
  const engine::Order& shown;  ///< The tasks to list.
  const engine::Order& all;    ///< All tasks, in the same order.
  bool lists_tasks = true;     ///< False: the text has no table of tasks.
};
std::string to_text(const RunView& run, const View& view);
std::string to_json(const RunView& run);

std::string to_text(const engine::BestTrial& best, const View& view);
std::string to_json(const engine::BestTrial& best);

/// {"version":1,"metric","direction","curves":[{"task","stopped_early","values"}]}
std::string curves_json(const experiment::Program& program,
                        const std::vector<engine::Curve>& curves);

/// The line "digits-3  failed: 38 done, 1 failed".
std::string state_line(const store::RunRecord& run, std::string_view state, const View& view);

}  // namespace berth::render
