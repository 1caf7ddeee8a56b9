// A batch: a run of a flow for each row of a table, whose columns are parameters of the flow. All
// runs are submitted before the first one starts, so they can be resumed after this process ends.
// Each has a separate runner; the machine's ledger decides which of their tasks run.
#pragma once

#include <string>
#include <vector>

#include "berth/engine/context.h"
#include "berth/engine/process.h"
#include "berth/engine/queries/shown_run.h"
#include "berth/engine/runs/submission.h"

namespace berth::engine {

struct BatchRequest {
  RunRequest run;                            ///< The request that all rows share.
  std::string rows;                          ///< The table: a .csv or .tsv file.
  std::vector<std::string> parameters = {};  ///< NAME=VALUE texts, which may not name a column.
};

struct BatchRow {
  std::string name;  ///< The first field of the row.
  Submission submission;
};

/// Reads and checks a submission for each row; `note` receives the notes of the first one. Errors:
/// usage; invalid, with the row; invalid, if two rows would write one file in different ways.
Result<std::vector<BatchRow>> read_batch(Context& context, const BatchRequest& request,
                                         const Note& note);

/// How the runs of a batch ended, in the order of the rows.
struct BatchResult {
  struct Run {
    std::string row;
    ShownRun run;
  };
  std::vector<Run> runs;
  bool is_interrupted = false;  ///< A stop signal arrived.
};

/// Submits the runs and drives them to their ends, as many in parallel as there are cores, at most
/// 16. A stop signal stops them. `note` receives the notes of the submissions, `print` a line for
/// each end and for each runner that did not start.
Result<BatchResult> run_batch(Context& context, std::vector<BatchRow>& rows, const Note& note,
                              const Print& print);

}  // namespace berth::engine
