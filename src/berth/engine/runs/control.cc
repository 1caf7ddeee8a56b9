#include "berth/engine/runs/control.h"

#include <csignal>

#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/run_state.h"
#include "berth/engine/runs/drive.h"
#include "berth/run/state/clusters.h"
#include "berth/run/state/find_run.h"
#include "berth/run/state/recorded_environment.h"
#include "berth/run/studies/study.h"

namespace berth::engine {
namespace {

/// Drops everything: the caller only wants the end of the run.
class Silent final : public run::Observer {
 public:
  void on_progress(const run::Progress&, Mono) override {}
  void on_task_end(const run::TaskEnd&) override {}
  void on_output(const exec::Output&) override {}
  void on_note(const std::string&) override {}
};

using Machines = std::vector<run::MayRun>;

/// Ends what the agents of a dead runner still run, in the way that the runner would have.
Result<Machines> stop_agents(run::Context& context, const store::RunRecord& record,
                             const Note& note) {
  context.env->request_stop();
  Silent silent;
  const Print print = [&](std::string_view text) { note(std::string(text)); };
  BERTH_ASSIGN(const auto now, drive(context, record.name, silent, print));
  note(
      now.state == store::RunState::stopped
          ? fmt::format("{} stopped; resume it with: berth resume {}", now.name, now.name)
          : fmt::format("{} is {}; its allocation was released", now.name, store::name(now.state)));
  return run::may_run_remotely(context, now);
}

/// Asks remote machines again that did not answer when the run ended.
Result<Machines> end_remote_tasks(run::Context& context, const store::RunRecord& record,
                                  const std::string& state, const Note& note) {
  note(fmt::format("{} does not run: it is {}", record.name, state));
  BERTH_ASSIGN(const auto before, run::may_run_remotely(context, record));
  if (before.empty()) return before;
  note("ending what may still run on other machines");
  BERTH_TRY(run::end_what_was_left(context, record.name));
  BERTH_ASSIGN(auto left, run::may_run_remotely(context, record));
  if (left.empty()) note("no part of it runs any more");
  return left;
}

/// The next ask of a program is answered with the stop; results of claimed trials are still
/// accepted.
Result<Machines> stop_study(run::Context& context, const store::RunRecord& record,
                            const Note& note) {
  if (record.state == store::RunState::done || record.state == store::RunState::failed) {
    note(fmt::format("{} does not run: it is {}", record.name, store::name(record.state)));
    return Machines{};
  }
  BERTH_TRY(context.store->apply(
      record.id, {{store::RunMoved{store::RunState::stopped, context.env->wall(), ""}}}));
  note(fmt::format("{} stopped; it continues when a program opens it", record.name));
  return Machines{};
}

/// Signals the runner, and waits for its end.
Status stop_runner(run::Context& context, const store::RunRecord& record) {
  os::Env& env = *context.env;
  const os::ProcessIdentity runner{static_cast<pid_t>(record.runner_pid), record.runner_started_at};
  if (const auto sent = env.signal_process(runner, SIGTERM);
      !sent && sent.error().kind != ErrorKind::not_found)
    return std::unexpected(sent.error());
  for (const int stops = env.stop_signals(); env.alive(runner);) {
    BERTH_TRY(env.wait({}, env.now() + std::chrono::milliseconds(20)));
    if (env.stop_signals() != stops)
      return fail(ErrorKind::interrupted, "{} is stopping", record.name);
    BERTH_ASSIGN(const auto now, context.store->find_run(record.name));
    if (!store::is_open(now.state)) break;
  }
  return {};
}

/// Notes that a flow whose file was edited continues as it was submitted.
Status note_edited(run::Context& context, const store::RunRecord& record, const Note& note) {
  if (record.kind != "flow") return {};
  const auto now = run::edited(*context.env, record);
  if (!now || !*now) return {};
  BERTH_ASSIGN(const auto before, run::flow_program(record.spec_json));
  const bool is_part = before.text == (*now)->text;
  note(fmt::format(
      "{} continues as it was submitted; {}{} was edited since: to use the edited file, "
      "run berth retry --file {}",
      record.name, is_part ? "a file included by " : "", (*now)->file, record.name));
  return {};
}

/// Chooses the environment of the tasks, and notes how the present one differs from that of the
/// submission.
Status choose_environment(run::Context& context, const store::RunRecord& record, bool of_submission,
                          const Note& note) {
  if (of_submission) return run::use_recorded_environment(context, record.name);
  BERTH_ASSIGN(const auto changed, run::changed_variables(context, record.name));
  if (changed.empty()) return {};
  std::string lines = run::to_text(changed);
  lines.pop_back();
  note(
      fmt::format("note: the environment differs from that of the submission of {}; to use that "
                  "one: --env-of-submission\n{}",
                  record.name, lines));
  return {};
}

}  // namespace

Result<Machines> stop(run::Context& context, const std::string& name, const Note& note) {
  os::Env& env = *context.env;
  BERTH_ASSIGN(const auto record, run::find_run(context, name));
  if (is_driven_elsewhere(env, record))
    return fail(ErrorKind::busy,
                "{} is driven on {}: stop it on that machine or, if that machine is gone, take the "
                "run over: berth resume {}",
                name, record.runner_host, name);
  if (record.kind == run::kStudy) return stop_study(context, record, note);
  const std::string state = state_now(env, record, context.state_directory);
  if (state == "interrupted" || (state == "failed" && !record.alloc.empty()))
    return stop_agents(context, record, note);
  if (!is_under_way(state)) return end_remote_tasks(context, record, state, note);
  if (is_driven_in_container(env, record, context.state_directory))
    return fail(ErrorKind::busy,
                "{}: its runner, process {}, is in another PID namespace, such as a container, and "
                "cannot be signalled from this one; run berth stop {} in that namespace",
                name, record.runner_pid, name);
  BERTH_TRY(stop_runner(context, record));
  note(fmt::format("{} stopped; resume it with: berth resume {}", name, name));
  return run::may_run_remotely(context, record);
}

Status check_resume(const store::RunRecord& record, const ResumeRequest& request) {
  if (!request.overwrite || record.kind == "flow") return {};
  return fail(ErrorKind::invalid, "--overwrite: {} is not a flow, and has no outputs", record.name);
}

Result<bool> prepare_resume(run::Context& context, const store::RunRecord& record,
                            const ResumeRequest& request, const Note& note) {
  BERTH_TRY(check_resume(record, request));
  const store::Counts& counts = record.counts;
  // A flow can fail before all of its tasks are known.
  const bool is_complete = record.state == store::RunState::done ||
                           (record.state == store::RunState::failed && counts.failed > 0);
  if (is_complete && counts.waiting + counts.running + counts.stopped == 0) return false;
  BERTH_TRY(note_edited(context, record, note));
  if (request.send_large) BERTH_TRY(run::confirm_sending(context, record));
  BERTH_TRY(choose_environment(context, record, request.env_of_submission, note));
  if (request.overwrite) BERTH_TRY(run::allow_overwriting(context, record));
  return true;
}

Result<std::vector<TaskNumber>> reopen(run::Context& context, const std::string& name,
                                       RetryScope scope) {
  std::string spec;
  if (scope == RetryScope::file) {
    BERTH_ASSIGN(const auto record, run::find_run(context, name));
    if (record.kind != "flow")
      return fail(ErrorKind::invalid,
                  "--file: {} is not a flow: its parameters are drawn; start a new run", name);
    BERTH_ASSIGN(auto now, run::edited(*context.env, record));
    if (now) {
      BERTH_ASSIGN(spec, run::resubmitted(context, record, *std::move(now)));
    }
  }
  return run::reopen(context, name, scope != RetryScope::failed, spec);
}

Status check_unused(run::Context& context, const store::RunRecord& run) {
  const bool may_be_used = run.kind != run::kStudy || run.counts.running > 0;
  if (!may_be_used || !is_under_way(state_now(*context.env, run, context.state_directory)))
    return {};
  return fail(ErrorKind::busy, "{} is running; stop it first: berth stop {}", run.name, run.name);
}

}  // namespace berth::engine
