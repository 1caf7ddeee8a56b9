#include "berth/cli/failures.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/cli/run_view.h"

namespace berth::cli {

Result<Failure> failure_of(run::Context& context, const store::RunRecord& run,
                           const store::TaskRecord& task) {
  Failure failure{.id = run.name + "/" + task.label,
                  .cause = cause_text(task),
                  .attempts = task.attempts,
                  .report = {}};
  BERTH_ASSIGN(failure.report, run::report_of(context, run, task));
  return failure;
}

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

std::string report_text(const run::TaskReport& report) {
  std::string text;
  for (const auto line : split(report.command, '\n'))
    if (!report.command.empty())
      text += fmt::format("  {} {}\n", text.empty() ? "command:" : "        ", line);
  if (!report.directory.empty()) text += fmt::format("  in: {}\n", report.directory);
  for (const auto& line : report.last_lines) text += fmt::format("  | {}\n", line);
  return text;
}

std::string failure_text(const Failure& failure) {
  return fmt::format("{} failed: {}{}\n{}  more: berth logs {}; berth why {}\n", failure.id,
                     failure.cause,
                     failure.attempts > 1 ? fmt::format(", {} times tried", failure.attempts) : "",
                     report_text(failure.report), failure.id, failure.id);
}

}  // namespace berth::cli
