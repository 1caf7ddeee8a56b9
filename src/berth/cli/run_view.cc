#include "berth/cli/run_view.h"

#include "berth/base/text.h"
#include "berth/run/study.h"

namespace berth::cli {

TaskPath parse_task_path(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return {std::string(text), {}};
  return {std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

Result<store::TaskRecord> find_task(run::Context& context, const store::RunRecord& run,
                                    const std::string& label) {
  auto task = context.store->find_task(run.id, label);
  if (!task && task.error().kind == ErrorKind::not_found)
    return fail(ErrorKind::not_found, "{} has no task '{}'; see berth show {}", run.name,
                clip(label), run.name);
  return task;
}

bool is_driven_elsewhere(os::Env& env, const store::RunRecord& run) {
  return run.state == store::RunState::running && !run.runner_host.empty() &&
         run.runner_host != env.host_name();
}

std::string interrupted_text(const store::RunRecord& run) {
  return fmt::format("{}; go on with: berth resume {}",
                     run.error.empty() ? "its runner died" : "it could not go on: " + run.error,
                     run.name);
}

std::string state_now(os::Env& env, const store::RunRecord& run) {
  // Whether a process of another machine lives is not known here.
  if (is_driven_elsewhere(env, run)) return std::string(store::name(run.state));
  const bool open = run.state == store::RunState::running || run.state == store::RunState::waiting;
  // It has no runner: whoever asks drives it.
  if (open && run.kind == run::kStudy) return run.counts.running > 0 ? "running" : "waiting";
  // A run is submitted and then taken over by the same process, within milliseconds.
  constexpr Duration kBetween = std::chrono::seconds(5);
  const bool lost = run.runner_pid != 0
                        ? !env.alive({static_cast<pid_t>(run.runner_pid), run.runner_started_at})
                        : env.wall() - run.created > kBetween;
  if (open && lost) return "interrupted";
  return std::string(store::name(run.state));
}

Result<experiment::Program> program_of(const store::RunRecord& run) {
  if (run.kind == "flow") return experiment::Program{};
  return experiment::from_json_text(run.spec_json);
}

experiment::Program shown_program(const store::RunRecord& run) {
  auto program = program_of(run);
  return program ? *std::move(program) : experiment::Program{};
}

std::string counts_text(const store::Counts& counts) {
  const std::pair<std::int64_t, std::string_view> parts[] = {
      {counts.done, "done"},      {counts.cached, "cached"},   {counts.skipped, "skipped"},
      {counts.failed, "failed"},  {counts.running, "running"}, {counts.waiting, "waiting"},
      {counts.stopped, "stopped"}};
  std::string text;
  for (const auto& [count, state] : parts)
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, state);
  return text.empty() ? "nothing" : text;
}

}  // namespace berth::cli
