// berth why: what happened to a run, or to a task attempt by attempt, and what it waits for.
#include "berth/cli/commands/explain.h"
#include "berth/cli/commands/shared_options.h"
#include "berth/engine/context.h"
#include "berth/engine/fleets/autoscale.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/task_explanation.h"
#include "berth/render/fleets/autoscale.h"
#include "berth/render/runs/explanation.h"

namespace berth::cli {
namespace {

struct WhyOptions {
  Output output;
  std::string path;

  void add_to(Options& options) {
    output.add_to(options);
    add_run_or_last(options, path, "RUN[/TASK]",
                    "Run or task, such as digits-3/17, or autoscale/SERVER");
    options.footer(
        "Examples:\n"
        "  berth why                     the latest run\n"
        "  berth why digits-3/17\n"
        "  berth why autoscale/chat      the decisions of berth autoscale");
  }
};

}  // namespace

Result<int> explain(os::Env& env, const std::string& of, const Output& output) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  const auto path = engine::parse_task_path(of);
  auto found = engine::find_run(context, path.run);
  if (!found && found.error().kind == ErrorKind::not_found && path.run == "autoscale" &&
      !path.task.empty()) {
    BERTH_ASSIGN(const auto history,
                 engine::autoscale_history(env, context.state_directory, path.task));
    output.print(history);
    return 0;
  }
  BERTH_ASSIGN(const auto record, std::move(found));
  if (path.task.empty()) {
    BERTH_ASSIGN(const auto run, engine::explain_run(context, record));
    output.print(run);
    return 0;
  }
  BERTH_ASSIGN(const auto task, engine::explain_task(context, record, path.task));
  output.print(task);
  return 0;
}

namespace {

Result<int> why(os::Env& env, const WhyOptions& options) {
  return explain(env, options.path, options.output);
}

}  // namespace

Command why_command() {
  return command("why", "Explain why a run or task waits, failed or stopped", why);
}

}  // namespace berth::cli
