#include "berth/engine/queries/run_record.h"

namespace berth::engine {

TaskPath parse_task_path(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return {std::string(text), {}};
  return {std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

std::string interrupted_text(const store::RunRecord& run) {
  return fmt::format("{}; resume it with: berth resume {}",
                     run.error.empty() ? "its runner died" : "it could not continue: " + run.error,
                     run.name);
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

std::string counts_and_error(const store::RunRecord& run) {
  const store::Counts& counts = run.counts;
  const std::string text = counts_text(counts);
  const bool counted = run.error == fmt::format("{} of {} failed", counts.failed, counts.total());
  return run.error.empty() || counted ? text : text + "; " + run.error;
}

}  // namespace berth::engine
