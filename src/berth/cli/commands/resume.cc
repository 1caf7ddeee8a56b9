// berth resume, berth retry and berth stop: a run that was submitted before.
#include "berth/cli/commands/follow.h"
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/output.h"
#include "berth/engine/context.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/runs/control.h"
#include "berth/engine/runs/drive.h"

namespace berth::cli {
namespace {

struct ResumeOptions {
  Output output;
  bool detach = false;
  engine::ResumeRequest request;
  std::string run;
  std::vector<TaskNumber> only = {};  // of retry: the tasks to run; empty: all that are open

  /// Declares how the run continues. Returns --detach.
  Option add_how_to(Options& options) {
    const Option detached =
        options.flag("--detach", detach, "Run in the background and print the run's name");
    options.flag("--overwrite", request.overwrite,
                 "Replace outputs of a flow that are protected or were edited");
    options.flag("--send-large", request.send_large,
                 "Send the experiment's folder although it exceeds 1 GiB or is a home directory");
    options.flag("--env-of-submission", request.env_of_submission,
                 "Use the environment variables of the submission, not the current ones");
    return detached;
  }

  void add_to(Options& options) {
    output.add_to(options);
    add_run(options, run);
    add_how_to(options);
    options.example("berth resume digits-3");
  }
};

struct RetryOptions {
  ResumeOptions then;
  bool failed = false, all = false, file = false;

  void add_to(Options& options) {
    then.output.add_to(options);
    add_run(options, then.run);
    options.group("What to run again (default: failed and unfinished tasks)");
    options.flag("--failed", failed, "Only failed tasks; tasks that never started stay waiting");
    options.flag("--all", all, "All tasks (of a flow: those that are not cached)")
        .excludes("--failed");
    options.flag("--file", file, "All tasks of a flow as its file is now, except cached ones")
        .excludes("--failed");
    options.group("How to run");
    then.add_how_to(options).excludes("--failed");
    options.example("berth retry digits-3");
  }
};

struct StopOptions {
  std::string run;

  void add_to(Options& options) {
    add_run(options, run);
    options.example("berth stop digits-3");
  }
};

void print_line(const std::string& line) {
  print_error(line + "\n");
}

Result<int> resume(os::Env& env, const ResumeOptions& options) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(const auto record, engine::find_run(context, options.run));
  BERTH_ASSIGN(const bool is_open,
               engine::prepare_resume(context, record, options.request, print_line));
  if (!is_open) {
    engine::conclude(context, record, print_error);  // unless its runner has done that
    print_error(fmt::format("{} is finished already: {}, {}\n", record.name,
                            store::name(record.state), engine::counts_text(record.counts)));
    if (options.detach) return 0;
    return engine::exit_code_of(*context.store, record);
  }
  if (options.detach) return drive_detached(context, record, options.output);
  return drive_to_end(env, context, record, options.output, options.only);
}

Result<int> retry(os::Env& env, const RetryOptions& options) {
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(const auto record, engine::find_run(context, options.then.run));
  if (options.then.request.overwrite && record.kind != "flow")
    return fail(ErrorKind::usage, "--overwrite: {} is not a flow, and has no outputs", record.name);
  if (options.failed && record.kind == "flow")
    return fail(ErrorKind::usage, "--failed: what is left of {} waits for what failed: retry all",
                record.name);
  using enum engine::RetryScope;
  const auto scope = options.file ? file : options.all ? all : failed;
  BERTH_ASSIGN(const auto reopened, engine::reopen(context, options.then.run, scope));
  if (reopened.empty() && scope == failed)
    print_error(fmt::format("nothing of {} has failed\n", options.then.run));
  if (options.failed && reopened.empty()) return engine::exit_code_of(*context.store, record);
  ResumeOptions then = options.then;
  if (options.failed) then.only = reopened;
  return resume(env, then);
}

Result<int> stop(os::Env& env, const StopOptions& options) {
  os::install_stop_signals();
  BERTH_ASSIGN(auto context, engine::open_context(env));
  BERTH_ASSIGN(const auto unreachable, engine::stop(context, options.run, print_line));
  for (const auto& one : unreachable) print_line(to_text(one, options.run));
  return unreachable.empty() ? 0 : exit_code(ErrorKind::busy);
}

}  // namespace

Command resume_command() {
  return command("resume", "Continue a run that was stopped or interrupted", resume);
}

Command retry_command() {
  return command("retry", "Run failed and unfinished tasks of a run again", retry);
}

Command stop_command() {
  return command("stop", "Stop a run so that it can be resumed", stop)
      .alias("cancel")
      .alias("kill");
}

}  // namespace berth::cli
