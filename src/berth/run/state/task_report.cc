#include "berth/run/state/task_report.h"

#include "berth/base/text.h"
#include "berth/base/url.h"
#include "berth/exec/command.h"
#include "berth/flow/flow.h"
#include "berth/run/drive/attempt_history.h"
#include "berth/run/state/layout.h"
#include "berth/run/state/log_file.h"
#include "berth/run/state/skips.h"
#include "berth/run/trials/trials.h"

namespace berth::run {
namespace {

constexpr std::size_t kMostLineBytes = 400;
constexpr std::size_t kMostTailBytes = 16'384;

std::vector<std::string> last_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (text.ends_with('\n')) text.remove_suffix(1);
  for (const auto line : split(text, '\n')) lines.push_back(clip(line, kMostLineBytes));
  if (lines.size() > kMostLastLines) lines.erase(lines.begin(), lines.end() - kMostLastLines);
  return lines;
}

/// What a task depends on has no attempt in its command.
void name_attempt(std::string& word, std::int64_t attempt) {
  constexpr std::string_view kName = "{attempt}";
  const std::string number = fmt::format("{}", attempt);
  for (auto at = word.find(kName); at != std::string::npos; at = word.find(kName, at))
    word.replace(at, kName.size(), number);
}

void add_output(Context& context, const store::RunRecord& run, const store::AttemptRecord& attempt,
                TaskReport& report) {
  auto reader = LogReader::open(*context.env, run_directory(context, run.name));
  if (!reader) return;
  reader->seek(attempt.log_begin);
  for (const auto stream : {exec::Stream::err, exec::Stream::out}) {
    const auto last = reader->last(attempt.token, stream, kMostTailBytes);
    if (!last || trim(*last).empty()) continue;
    report.last_lines = last_lines(*last);
    return;
  }
}

}  // namespace

std::string command_text(const std::vector<std::string>& words) {
  if (const auto text = exec::text_for_shell(words)) return without_secrets(*text);
  std::string text;
  for (const auto& word : words)
    text += (text.empty() ? "" : " ") + shell_quote(without_secrets(word));
  return text;
}

Result<TaskReport> report_of(Context& context, const store::RunRecord& run,
                             const store::TaskRecord& task) {
  TaskReport report{.params = task.params};
  const std::string own = run_directory(context, run.name);
  BERTH_ASSIGN(const auto attempt, number_of_attempt(*context.store, run.id, task, task.token));
  if (run.kind != "flow") {
    BERTH_ASSIGN(const auto program, experiment::from_json_text(run.spec_json));
    report.command = command_text(trial_command(program, own, task));
    if (program.remote_directory.empty()) report.directory = run.directory;
    report.environment = program.environment;
  } else if (!depended_on(task).empty()) {
    BERTH_ASSIGN(auto recorded, flow::read_record(task.depends));
    for (auto& word : recorded.command) name_attempt(word, attempt);
    report.command = command_text(recorded.command);
    report.params = std::move(recorded.params);
    report.environment = std::move(recorded.environment);
    report.directory = task_directory(own, task.number, task.token);
  }
  if (!report.directory.empty() && !context.env->status(report.directory)) report.directory.clear();
  for (const auto& [name, value] : report.params)
    set(report.environment, parameter_variable(name), value);
  for (auto& [_, value] : report.params) value = without_secrets(value);
  name_task(report.environment, own, run, task, task.token, attempt);
  BERTH_ASSIGN(const auto attempts, context.store->attempts(run.id, task.number));
  if (!attempts.empty()) add_output(context, run, attempts.back(), report);
  return report;
}

}  // namespace berth::run
