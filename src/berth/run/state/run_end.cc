#include "berth/run/state/run_end.h"

#include <csignal>

#include "berth/base/document.h"

namespace berth::run {
namespace {

constexpr int kRunFailed = 1, kTimeLimit = 124, kSignalBase = 128;

int code_of_command(const store::TaskRecord& task) {
  if (!task.cause) return kRunFailed;
  switch (*task.cause) {
    case exec::Cause::exit_code: return task.exit_code.value_or(kRunFailed);
    case exec::Cause::time_limit: return kTimeLimit;
    case exec::Cause::signal: return kSignalBase + task.signal;
    case exec::Cause::out_of_memory:
    case exec::Cause::gpu_memory: return kSignalBase + SIGKILL;
    default: return kRunFailed;
  }
}

}  // namespace

std::optional<StoppedBy> stopped_by(const store::RunRecord& run) {
  if (run.state != store::RunState::stopped) return std::nullopt;
  const auto result = Field::parse(run.result, "result");
  if (!result) return std::nullopt;
  const auto by = result->find("stopped_by");
  const auto text = by ? by->text() : Result<std::string>("");
  return text ? kStoppedByNames.value(*text) : std::nullopt;
}

Result<int> exit_code_of(store::Store& store, const store::RunRecord& run) {
  switch (run.state) {
    case store::RunState::done: return 0;
    case store::RunState::failed: break;
    case store::RunState::stopped:
      return exit_code(stopped_by(run) == StoppedBy::interrupt ? ErrorKind::interrupted
                                                               : ErrorKind::busy);
    case store::RunState::queued:
    case store::RunState::running: return exit_code(ErrorKind::busy);
  }
  if (run.kind != "command") return kRunFailed;
  BERTH_ASSIGN(const auto tasks, store.tasks(run.id));
  return tasks.empty() ? kRunFailed : code_of_command(tasks.front());
}

}  // namespace berth::run
