// berth ask, berth tell: the trials of a passive run, whose scores somebody else finds out.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/cli/json_output.h"
#include "berth/cli/print.h"
#include "berth/cli/run_view.h"
#include "berth/cli/shared_options.h"
#include "berth/cli/trials_view.h"
#include "berth/run/passive_worker.h"
#include "berth/run/study.h"

namespace berth::cli {
namespace {

struct AskOptions {
  bool json = false, wait = false;
  std::string run;

  void add_to(Options& options) {
    options.json(json);
    add_run(options, run);
    options.flag("--wait", wait, "until one does, or the run is over");
    options.example("berth ask digits-3 --wait --json");
  }
};

struct TellOptions {
  bool json = false;
  std::string trial;
  std::vector<std::string> values;

  void add_to(Options& options) {
    options.json(json);
    options.after_dashes(values);  // a negative score, say
    options.value("TRIAL", trial, "such as digits-3/17").required();
    options.list("VALUE", values,
                 "the score (a value for each goal), NAME=VALUE …, or failed with a reason");
    options.footer(
        "Examples:\n  berth tell digits-3/17 0.93\n  berth tell digits-3/17 accuracy=0.93 "
        "loss=0.2\n  berth tell digits-3/17 -- -0.5\n  berth tell digits-3/17 failed 'it caught "
        "fire'");
  }
};

Result<experiment::Program> passive_program(const store::RunRecord& run) {
  BERTH_ASSIGN(auto program, program_of(run));
  if (run.kind == run::kStudy)
    return fail(ErrorKind::invalid,
                "{} is a study: its trials are asked for and told through berth study, or Python's "
                "berth.load_study(\"{}\")",
                run.name, run.name);
  if (!program.passive)
    return fail(ErrorKind::invalid, "{} is not passive: its trials report for themselves",
                run.name);
  return program;
}

/// The trials that run and have no answer yet. The answers are read before the tasks: an answer is
/// removed only once its task is recorded as ended.
Result<std::vector<store::TaskRecord>> open_trials(os::Env& env, run::Context& context,
                                                   const store::RunRecord& run) {
  const auto answered =
      run::answered(env, run::answers_directory(run_directory(context, run.name)));
  BERTH_ASSIGN(auto tasks, context.store->tasks(run.id));
  std::erase_if(tasks, [&](const auto& task) {
    return task.state != store::TaskState::running ||
           std::ranges::find(answered, task.number) != answered.end();
  });
  return tasks;
}

Result<int> ask(os::Env& env, const AskOptions& options) {
  constexpr Duration kLookEvery = std::chrono::milliseconds(20);
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  os::install_stop_signals();
  for (;;) {
    BERTH_ASSIGN(const auto record, context.store->find_run(options.run));
    BERTH_ASSIGN(const auto program, passive_program(record));
    BERTH_ASSIGN(const auto open, open_trials(env, context, record));
    const ShownRun shown{record, state_now(env, record)};
    // A runner that has just taken over a stopped run has yet to say that it runs.
    const os::ProcessIdentity runner{static_cast<pid_t>(record.runner_pid),
                                     record.runner_started_at};
    const bool going = shown.state == "running" || shown.state == "waiting" ||
                       (record.runner_pid != 0 && env.alive(runner));
    if (open.empty() && going && options.wait) {
      if (env.stop_signals() > 0) return exit_code(ErrorKind::interrupted);
      BERTH_TRY(env.wait({}, env.now() + kLookEvery));
      continue;
    }
    if (options.json) {
      print(show_json(shown, open));
    } else if (open.empty()) {
      print_error(fmt::format("{} asks for nothing: it is {}\n", record.name, shown.state));
    } else {
      print(trials_table(in_turn(open), program, 0));
      print_error(
          fmt::format("answer with: berth tell {}/{} VALUE\n", record.name, open.front().label));
    }
    return 0;
  }
}

Result<int> tell(os::Env& env, const TellOptions& options) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  const TaskPath path = parse_task_path(options.trial);
  BERTH_ASSIGN(const auto record, context.store->find_run(path.run));
  BERTH_ASSIGN(const auto program, passive_program(record));
  if (path.task.empty())
    return fail(ErrorKind::usage, "wanted RUN/TASK, such as {}/1, found '{}'", record.name,
                clip(options.trial));
  BERTH_ASSIGN(const auto task, find_task(context, record, path.task));
  if (store::final(task.state))
    return fail(ErrorKind::invalid, "{}/{} has ended already: {}", record.name, task.label,
                store::name(task.state));
  const auto answer = run::read_answer(join(options.values, " "), run::asked_of(program));
  if (!answer) return std::unexpected(within(options.trial, answer.error()));
  BERTH_TRY(run::leave_answer(env, run::answers_directory(run_directory(context, record.name)),
                              task.number, *answer));
  const std::string id = fmt::format("{}/{}", record.name, task.label);
  if (options.json) {
    print(names_json("told", {id}));
  } else if (state_now(env, record) != "running") {
    print_error(fmt::format("{} is kept; go on with: berth resume {}\n", id, record.name));
  }
  return 0;
}

}  // namespace

Command ask_command() {
  return command("ask", "which trials of a passive run wait for their scores", ask);
}

Command tell_command() {
  return command("tell", "what came of a trial of a passive run", tell);
}

}  // namespace berth::cli
