// Why a whole run waits, failed or ended as it did.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "berth/run/state/context.h"
#include "berth/store/store.h"

namespace berth::engine {

/// Tasks of a run that wait, or failed, for the same reason.
struct TaskGroup {
  std::string reason;      ///< "exit 1"; "it is next; another try may be due after a pause".
  std::string detail;      ///< A sentence that an attempt left; "" for none.
  std::int64_t count = 0;  ///< The number of tasks.
  std::vector<std::string> tasks;  ///< The ids of the first of them: "digits-3/17".
};

struct RunExplanation {
  store::RunRecord record;
  std::string state;  ///< From state_now().
  std::string why{};  ///< One sentence: how the run ended, or that it runs.
  std::vector<TaskGroup> waiting{}, failed{};
  std::string deleted_files{};     ///< Lines about files that were not copied back; "": none.
  std::optional<int> exit_code{};  ///< nullopt for an open or interrupted run.
};

/// Returns the reason why a task does not run now.
using ReasonOf = std::function<Result<std::string>(const store::TaskRecord&)>;

/// Explains the run: the waiting tasks by reason, the failed tasks by cause, and how it ended.
Result<RunExplanation> explanation_of(run::Context& context, const store::RunRecord& record,
                                      const ReasonOf& reason_of);

}  // namespace berth::engine
