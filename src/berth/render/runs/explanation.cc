#include "berth/render/runs/explanation.h"

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/engine/queries/run_json.h"
#include "berth/engine/queries/run_record.h"
#include "berth/render/runs/failures.h"

namespace berth::render {
namespace {

std::string group_text(const engine::TaskGroup& group, std::string_view did) {
  std::string text = fmt::format("  {} {}: {}\n", group.count, did, group.reason);
  if (!group.detail.empty()) text += fmt::format("    {}\n", group.detail);
  const auto more = group.count - std::ssize(group.tasks);
  const auto& shown = group.tasks;
  if (group.count == 1 || did == "failed")
    text += fmt::format("    {}{}\n", join(shown, ", "),
                        more > 0 ? fmt::format(" and {} more", more) : "");
  return text;
}

std::string attempt_text(const store::AttemptRecord& attempt) {
  std::string text = fmt::format("  attempt {}: {}", attempt.number, format_utc(attempt.started));
  if (!attempt.ended) return text + ", running\n";
  text += fmt::format(", {} after {}", engine::cause_text(attempt),
                      format_duration(*attempt.ended - attempt.started));
  text += fmt::format(", cpu {}", format_duration(from_ms(attempt.cpu_ms)));
  if (attempt.peak_mem > 0) text += fmt::format(", peak mem {}", format_bytes(attempt.peak_mem));
  if (!attempt.host.empty()) text += fmt::format(", on {}", attempt.host);
  if (!attempt.devices.empty()) text += fmt::format(", devices {}", attempt.devices);
  if (!attempt.detail.empty()) text += fmt::format("\n    {}", attempt.detail);
  return text + "\n";
}

}  // namespace

std::string to_text(const engine::RunExplanation& run, const View&) {
  std::string text = fmt::format("{}: {}: {}\n  {}\n", run.record.name, run.state,
                                 engine::counts_text(run.record.counts), run.why);
  for (const auto& group : run.waiting) text += group_text(group, "waiting");
  for (const auto& group : run.failed) text += group_text(group, "failed");
  if (!run.failed.empty())
    text += fmt::format("  more: berth why {}\n", run.failed.front().tasks.front());
  for (const auto line : split(run.deleted_files, '\n'))
    if (!line.empty()) text += fmt::format("  {}\n", line);
  return text;
}

std::string to_text(const engine::TaskExplanation& of, const View&) {
  const std::string id = of.run.name + "/" + of.task.label;
  std::string text = fmt::format("{}: {}\n", id, of.why);
  for (const auto& [name, value] : of.report.params)
    text += fmt::format("  {} = {}\n", name, value);
  for (const auto& line : of.because) text += fmt::format("  {}\n", line);
  for (const auto& attempt : of.attempts) text += attempt_text(attempt);
  if (of.task.state == store::TaskState::failed)
    text += report_text(of.report) + fmt::format("  more: berth logs {}\n", id);
  return text;
}

std::string to_json(const engine::RunExplanation& run) {
  return engine::why_run_json(run);
}

std::string to_json(const engine::TaskExplanation& task) {
  return engine::why_json(task.run, task.task, task.attempts, task.why, task.because, task.report);
}

}  // namespace berth::render
