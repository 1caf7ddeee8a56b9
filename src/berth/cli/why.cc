// berth why: what happened to a run, or to a task attempt by attempt, and what it waits for.
#include "berth/base/units.h"
#include "berth/cli/explain.h"
#include "berth/cli/explain_run.h"
#include "berth/cli/failures.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/cli/shared_options.h"
#include "berth/engine/autoscale.h"
#include "berth/engine/run_json.h"
#include "berth/engine/run_record.h"
#include "berth/engine/task_explanation.h"
#include "berth/render/autoscale.h"
#include "berth/run/find_run.h"

namespace berth::cli {
namespace {

struct WhyOptions {
  bool json = false;
  std::string path;

  void add_to(Options& options) {
    options.json(json);
    add_run_or_last(options, path, "RUN[/TASK]",
                    "Run or task, such as digits-3/17, or autoscale/SERVER");
    options.footer(
        "Examples:\n"
        "  berth why                     the latest run\n"
        "  berth why digits-3/17\n"
        "  berth why autoscale/chat      the decisions of berth autoscale");
  }
};

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

std::string task_text(const engine::TaskExplanation& of) {
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

}  // namespace

Result<int> explain(os::Env& env, const std::string& of, bool json) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  const auto path = engine::parse_task_path(of);
  auto found = run::find_run(context, path.run);
  if (!found && found.error().kind == ErrorKind::not_found && path.run == "autoscale" &&
      !path.task.empty()) {
    BERTH_ASSIGN(const auto history,
                 engine::autoscale_history(env, context.state_directory, path.task));
    print(json ? render::to_json(history) : render::to_text(history, view()));
    return 0;
  }
  BERTH_ASSIGN(const auto record, std::move(found));
  if (path.task.empty()) {
    BERTH_ASSIGN(const auto run, engine::explain_run(context, record));
    print(json ? engine::why_run_json(run) : explanation_text(run));
    return 0;
  }
  BERTH_ASSIGN(const auto task, engine::explain_task(context, record, path.task));
  print(json ? engine::why_json(task.run, task.task, task.attempts, task.why, task.because,
                                task.report)
             : task_text(task));
  return 0;
}

namespace {

Result<int> why(os::Env& env, const WhyOptions& options) {
  return explain(env, options.path, options.json);
}

}  // namespace

Command why_command() {
  return command("why", "Explain why a run or task waits, failed or stopped", why);
}

}  // namespace berth::cli
