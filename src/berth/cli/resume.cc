// berth resume, berth retry and berth stop: a run that was submitted before.
#include <csignal>

#include "berth/cli/follow.h"
#include "berth/cli/json_output.h"
#include "berth/cli/on_end.h"
#include "berth/cli/print.h"
#include "berth/cli/run_view.h"
#include "berth/cli/screen.h"
#include "berth/cli/shared_options.h"
#include "berth/run/clusters.h"
#include "berth/run/find_run.h"
#include "berth/run/recorded_environment.h"
#include "berth/run/run_end.h"
#include "berth/run/runner.h"
#include "berth/run/study.h"

namespace berth::cli {
namespace {

constexpr const char* kDetach = "Run in the background and print the run's name";
constexpr const char* kOverwrite = "Replace outputs of a flow that are protected or were edited";
constexpr const char* kSendLarge =
    "Send the experiment's folder although it exceeds 1 GiB or is a home directory";
constexpr const char* kEnvOfSubmission =
    "Use the environment variables of the submission, not the current ones";

struct ResumeOptions {
  bool json = false, detach = false, send_large = false, env_of_submission = false;
  bool overwrite = false;
  std::string run;

  void add_to(Options& options) {
    options.json(json);
    add_run(options, run);
    options.flag("--detach", detach, kDetach);
    options.flag("--overwrite", overwrite, kOverwrite);
    options.flag("--send-large", send_large, kSendLarge);
    options.flag("--env-of-submission", env_of_submission, kEnvOfSubmission);
    options.example("berth resume digits-3");
  }
};

struct RetryOptions {
  bool json = false, detach = false, failed = false, all = false, file = false, send_large = false;
  bool env_of_submission = false, overwrite = false;
  std::string run;

  void add_to(Options& options) {
    options.json(json);
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

/// Notes that a flow whose file was edited goes on as it was submitted.
Status note_edited(os::Env& env, const store::RunRecord& record) {
  if (record.kind != "flow") return {};
  const auto now = run::edited(env, record);
  if (!now || !*now) return {};
  BERTH_ASSIGN(const auto before, run::flow_program(record.spec_json));
  const bool other = before.text == (*now)->text;
  print_error(
      fmt::format("{} continues as it was submitted; {}{} was edited since: to use the edited "
                  "file, run berth retry --file {}\n",
                  record.name, other ? "a file included by " : "", (*now)->file, record.name));
  return {};
}

/// Chooses the environment of the tasks, and says where the present one is not that of the
/// submission.
Status choose_environment(run::Context& context, const store::RunRecord& record,
                          bool of_submission) {
  if (of_submission) return run::use_recorded_environment(context, record.name);
  BERTH_ASSIGN(const auto changed, run::changed_variables(context, record.name));
  if (!changed.empty())
    print_error(
        fmt::format("note: the environment differs from that of the submission of {}; to use that "
                    "one: --env-of-submission\n{}",
                    record.name, run::to_text(changed)));
  return {};
}

/// The run's specification as its file is now; "" where that is the one it has.
Result<std::string> spec_of_file(os::Env& env, run::Context& context,
                                 const store::RunRecord& record) {
  if (record.kind != "flow")
    return fail(ErrorKind::usage,
                "--file: {} is not a flow: its parameters are drawn; start a new run", record.name);
  BERTH_ASSIGN(auto now, run::edited(env, record));
  if (!now) return std::string();
  return run::resubmitted(context, record, *std::move(now));
}

/// Ends what the agents of a dead runner still run, in the way that the runner would have.
Result<int> stop_agents(os::Env& env, run::Context& context, const store::RunRecord& record) {
  os::install_stop_signals();
  BERTH_TRY(env.signal_process(env.self(), SIGTERM));
  Screen screen(env, record.name, Show::nothing);
  BERTH_ASSIGN(const auto now, run::drive(context, record.name, screen));
  after_end(env, context, now);
  print_error(now.state == store::RunState::stopped
                  ? fmt::format("{} stopped; resume it with: berth resume {}\n", now.name, now.name)
                  : fmt::format("{} is {}; its allocation was released\n", now.name,
                                store::name(now.state)));
  BERTH_ASSIGN(const bool may_run, warn_of_what_may_run(context, now));
  return may_run ? exit_code(ErrorKind::busy) : 0;
}

/// Asks machines again that did not answer when the run was stopped.
Result<int> stop_elsewhere(os::Env& env, run::Context& context, const store::RunRecord& record) {
  os::install_stop_signals();
  print_error(fmt::format("{} does not run: it is {}\n", record.name, state_now(env, record)));
  BERTH_ASSIGN(const auto before, run::may_run_remotely(context, record));
  if (before.empty()) return 0;
  print_error("ending what may still run on other machines\n");
  BERTH_TRY(run::end_what_was_left(context, record.name));
  BERTH_ASSIGN(const bool may_run, warn_of_what_may_run(context, record));
  if (may_run) return exit_code(ErrorKind::busy);
  print_error("no part of it runs any more\n");
  return 0;
}

/// Whoever asks for its next trial is told so; what is out may still be told.
Result<int> stop_study(os::Env& env, run::Context& context, const store::RunRecord& record) {
  if (record.state == store::RunState::done || record.state == store::RunState::failed) {
    print_error(fmt::format("{} does not run: it is {}\n", record.name, state_now(env, record)));
    return 0;
  }
  BERTH_TRY(context.store->apply(record.id,
                                 {{store::RunMoved{store::RunState::stopped, env.wall(), ""}}}));
  print_error(fmt::format("{} stopped; it continues when a program opens it\n", record.name));
  return 0;
}

Status check_overwrite(bool overwrite, const store::RunRecord& record) {
  if (!overwrite || record.kind == "flow") return {};
  return fail(ErrorKind::usage, "--overwrite: {} is not a flow, and has no outputs", record.name);
}

Result<int> resume(os::Env& env, const ResumeOptions& options) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_ASSIGN(const auto record, run::find_run(context, options.run));
  BERTH_TRY(check_overwrite(options.overwrite, record));
  if (record.state == store::RunState::done || record.state == store::RunState::failed) {
    const store::Counts& counts = record.counts;
    // A flow can fail before all of its tasks are known.
    const bool is_complete = record.state == store::RunState::done || counts.failed > 0;
    if (is_complete && counts.waiting + counts.running + counts.stopped == 0) {
      after_end(env, context, record);  // unless whoever drove it to its end has done that
      print_error(fmt::format("{} is finished already: {}, {}\n", record.name,
                              store::name(record.state), counts_text(counts)));
      if (options.detach) return 0;
      return run::exit_code_of(*context.store, record);
    }
  }
  BERTH_TRY(note_edited(env, record));
  if (options.send_large) BERTH_TRY(run::confirm_sending(context, record));
  BERTH_TRY(choose_environment(context, record, options.env_of_submission));
  if (options.overwrite) BERTH_TRY(run::allow_overwriting(context, record));
  if (options.detach) return drive_detached(env, context, record, options.json);
  return drive_to_end(env, context, record, options.json);
}

Result<int> retry(os::Env& env, const RetryOptions& options) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_ASSIGN(const auto record, run::find_run(context, options.run));
  BERTH_TRY(check_overwrite(options.overwrite, record));
  if (options.failed && record.kind == "flow")
    return fail(ErrorKind::usage, "--failed: what is left of {} waits for what failed: retry all",
                record.name);
  std::string spec;
  if (options.file) {
    BERTH_ASSIGN(spec, spec_of_file(env, context, record));
  }
  const bool all = options.all || options.file;
  BERTH_ASSIGN(const auto reopened, run::reopen(context, options.run, all, spec));
  if (reopened.empty() && !all) print_error(fmt::format("nothing of {} has failed\n", options.run));
  if (!options.failed)
    return resume(env, {.json = options.json,
                        .detach = options.detach,
                        .send_large = options.send_large,
                        .env_of_submission = options.env_of_submission,
                        .overwrite = options.overwrite,
                        .run = options.run});
  if (reopened.empty()) return run::exit_code_of(*context.store, record);
  if (options.send_large) BERTH_TRY(run::confirm_sending(context, record));
  BERTH_TRY(choose_environment(context, record, options.env_of_submission));
  return drive_to_end(env, context, record, options.json, reopened);
}

Result<int> stop(os::Env& env, const StopOptions& options) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_ASSIGN(const auto record, run::find_run(context, options.run));
  if (is_driven_elsewhere(env, record))
    return fail(ErrorKind::busy,
                "{} is driven on {}: stop it on that machine or, if that machine is gone, take the "
                "run over: berth resume {}",
                record.name, record.runner_host, record.name);
  if (record.kind == run::kStudy) return stop_study(env, context, record);
  const std::string state = state_now(env, record);
  if (state == "interrupted" || (state == "failed" && !record.alloc.empty()))
    return stop_agents(env, context, record);
  if (!is_under_way(state)) return stop_elsewhere(env, context, record);
  if (is_driven_in_container(env, record))
    return fail(ErrorKind::busy,
                "{}: its runner, process {}, is in another PID namespace, such as a container, and "
                "cannot be signalled from this one; run berth stop {} in that namespace",
                record.name, record.runner_pid, record.name);
  const os::ProcessIdentity runner{static_cast<pid_t>(record.runner_pid), record.runner_started_at};
  if (const auto sent = env.signal_process(runner, SIGTERM);
      !sent && sent.error().kind != ErrorKind::not_found)
    return std::unexpected(sent.error());
  while (env.alive(runner)) {
    const Mono soon = env.now() + std::chrono::milliseconds(20);
    BERTH_TRY(env.wait({}, soon));
    BERTH_ASSIGN(const auto now, context.store->find_run(options.run));
    if (!store::is_open(now.state)) break;
  }
  print_error(
      fmt::format("{} stopped; resume it with: berth resume {}\n", record.name, record.name));
  BERTH_ASSIGN(const bool may_run, warn_of_what_may_run(context, record));
  return may_run ? exit_code(ErrorKind::busy) : 0;
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
