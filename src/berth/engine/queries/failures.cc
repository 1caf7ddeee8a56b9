#include "berth/engine/queries/failures.h"

#include <algorithm>

#include "berth/engine/queries/run_record.h"

namespace berth::engine {
namespace {

Result<Failure> failure_of(run::Context& context, const store::RunRecord& run,
                           const store::TaskRecord& task) {
  Failure failure{
      .id = run.name + "/" + task.label, .cause = cause_text(task), .attempts = task.attempts};
  BERTH_ASSIGN(failure.report, run::report_of(context, run, task));
  return failure;
}

}  // namespace

Result<std::vector<Failure>> failures_of(run::Context& context, const store::RunRecord& run,
                                         const std::vector<store::TaskRecord>& tasks,
                                         std::size_t most) {
  std::vector<const store::TaskRecord*> failed;
  for (const auto& task : tasks)
    if (task.state == store::TaskState::failed) failed.push_back(&task);
  std::ranges::stable_sort(failed, {}, &store::TaskRecord::ended);
  if (failed.size() > most) failed.resize(most);
  std::vector<Failure> failures;
  for (const auto* task : failed) {
    BERTH_ASSIGN(failures.emplace_back(), failure_of(context, run, *task));
  }
  return failures;
}

}  // namespace berth::engine
