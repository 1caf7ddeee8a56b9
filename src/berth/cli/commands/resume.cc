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

constexpr const char* kDetach = "Run in the background and print the run's name";
constexpr const char* kOverwrite = "Replace outputs of a flow that are protected or were edited";
constexpr const char* kSendLarge =
    "Send the experiment's folder although it exceeds 1 GiB or is a home directory";
constexpr const char* kEnvOfSubmission =
    "Use the environment variables of the submission, not the current ones";

struct ResumeOptions {
  Output output;
  bool detach = false, send_large = false, env_of_submission = false;
  bool overwrite = false;
  std::string run;
  std::vector<TaskNumber> only = {};  // of retry: the tasks to run; empty: all that are open

  void add_to(Options& options) {
    output.add_to(options);
    add_run(options, run);
    options.flag("--detach", detach, kDetach);
    options.flag("--overwrite", overwrite, kOverwrite);
    options.flag("--send-large", send_large, kSendLarge);
    options.flag("--env-of-submission", env_of_submission, kEnvOfSubmission);
    options.example("berth resume digits-3");
  }
};

struct RetryOptions {
  Output output;
  bool detach = false, failed = false, all = false, file = false, send_large = false;
  bool env_of_submission = false, overwrite = false;
  std::string run;

  void add_to(Options& options) {
    output.add_to(options);
    add_run(options, run);
    options.group("What to run again (default: failed and unfinished tasks)");
    options.flag("--failed", failed, "Only failed tasks; tasks that never started stay waiting");
    options.flag("--all", all, "All tasks (of a flow: those that are not cached)")
        .excludes("--failed");
    options.flag("--file", file, "All tasks of a flow as its file is now, except cached ones")
        .excludes("--failed");
    options.group("How to run");
    options.flag("--detach", detach, kDetach).excludes("--failed");
    options.flag("--overwrite", overwrite, kOverwrite);
    options.flag("--send-large", send_large, kSendLarge);
    options.flag("--env-of-submission", env_of_submission, kEnvOfSubmission);
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
  const engine::ResumeRequest request{.send_large = options.send_large,
                                      .env_of_submission = options.env_of_submission,
                                      .overwrite = options.overwrite};
  BERTH_ASSIGN(const bool is_open, engine::prepare_resume(context, record, request, print_line));
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
  BERTH_ASSIGN(const auto record, engine::find_run(context, options.run));
  if (options.overwrite && record.kind != "flow")
    return fail(ErrorKind::usage, "--overwrite: {} is not a flow, and has no outputs", record.name);
  if (options.failed && record.kind == "flow")
    return fail(ErrorKind::usage, "--failed: what is left of {} waits for what failed: retry all",
                record.name);
  using enum engine::RetryScope;
  const auto scope = options.file ? file : options.all ? all : failed;
  BERTH_ASSIGN(const auto reopened, engine::reopen(context, options.run, scope));
  if (reopened.empty() && scope == failed)
    print_error(fmt::format("nothing of {} has failed\n", options.run));
  if (options.failed && reopened.empty()) return engine::exit_code_of(*context.store, record);
  return resume(env, {.output = options.output,
                      .detach = options.detach,
                      .send_large = options.send_large,
                      .env_of_submission = options.env_of_submission,
                      .overwrite = options.overwrite,
                      .run = options.run,
                      .only = options.failed ? reopened : std::vector<TaskNumber>{}});
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
