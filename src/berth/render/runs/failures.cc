#include "berth/render/runs/failures.h"

#include "berth/base/text.h"
#include "berth/engine/queries/failures.h"

namespace berth::render {

std::string report_text(const run::TaskReport& report) {
  std::string text;
  for (const auto line : split(report.command, '\n'))
    if (!report.command.empty())
      text += fmt::format("  {} {}\n", text.empty() ? "command:" : "        ", line);
  if (!report.directory.empty()) text += fmt::format("  in: {}\n", report.directory);
  for (const auto& line : report.last_lines) text += fmt::format("  | {}\n", line);
  return text;
}

std::string failure_text(const engine::Failure& failure) {
  return fmt::format("{} failed: {}{}\n{}  more: berth logs {}; berth why {}\n", failure.id,
                     failure.cause,
                     failure.attempts > 1 ? fmt::format(", {} times tried", failure.attempts) : "",
                     report_text(failure.report), failure.id, failure.id);
}

}  // namespace berth::render
