// berth run FILE --rows TABLE: a run of a flow for each row of a table, whose columns are
// parameters of the flow. All runs are submitted before the first begins, so that whatever ends
// this process leaves runs that can be resumed; each has a runner of its own, and the machine's
// ledger says which of their tasks run when.
#pragma once

#include <string>
#include <vector>

#include "berth/cli/run_options.h"
#include "berth/flow/table.h"
#include "berth/run/flow_run.h"

namespace berth::cli {

inline constexpr std::size_t kMostRowsOfBatch = 10'000;
inline constexpr std::string_view kRowLabel = "row";  // of a run: the first field of its row

/// The options of each row's run: the columns as --set, the row as a label. usage: a column that
/// --set names too; invalid: a table that is none.
Result<std::vector<RunOptions>> options_of_rows(os::Env& env, const RunOptions& options);

/// Checks that no two rows write one file each in its own way. invalid: names rows, step and file.
Status check_rows(const std::vector<run::FlowProgram>& programs, const flow::Table& table);

/// Drives these runs to their ends, as many side by side as there are cores, and prints how they
/// ended. Returns the exit code: 0 where all are done.
Result<int> drive_batch(os::Env& env, run::Context& context,
                        const std::vector<store::RunRecord>& runs, bool json);

}  // namespace berth::cli
