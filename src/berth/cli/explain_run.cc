#include "berth/cli/explain_run.h"

#include "berth/base/text.h"
#include "berth/engine/run_record.h"

namespace berth::cli {
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

}  // namespace

std::string explanation_text(const engine::RunExplanation& run) {
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

}  // namespace berth::cli
