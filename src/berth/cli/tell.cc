// berth ask, berth tell: the trials of a passive run, whose scores somebody else finds out.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/cli/commands.h"
#include "berth/cli/json_output.h"
#include "berth/cli/trials_view.h"
#include "berth/run/passive.h"

namespace berth::cli {
namespace {

Result<experiment::Program> passive_program(const store::RunRecord& run) {
  BERTH_ASSIGN(auto program, program_of(run));
  if (!program.passive)
    return fail(ErrorKind::invalid, "{} is not passive: its trials report for themselves",
                run.name);
  return program;
}

/// Those that run and that nobody has told anything of. What was told is looked at first: it goes
/// only once the task is recorded as ended.
Result<std::vector<store::TaskRecord>> open_trials(os::Env& env, run::Site& site,
                                                   const store::RunRecord& run) {
  const auto told = run::answered(env, run::answers_directory(run_directory(site, run.name)));
  BERTH_ASSIGN(auto tasks, site.store->tasks(run.id));
  std::erase_if(tasks, [&](const auto& task) {
    return task.state != store::TaskState::running ||
           std::ranges::find(told, task.number) != told.end();
  });
  return tasks;
}

}  // namespace

Result<int> ask_command(os::Env& env, const Arguments& arguments) {
  constexpr Duration kLookEvery = std::chrono::milliseconds(20);
  BERTH_ASSIGN(run::Site site, run::open_site(env));
  os::install_stop_signals();
  for (;;) {
    BERTH_ASSIGN(const auto record, site.store->find_run(arguments.target));
    BERTH_ASSIGN(const auto program, passive_program(record));
    BERTH_ASSIGN(const auto open, open_trials(env, site, record));
    const ShownRun shown{record, state_now(env, record)};
    // A runner that has just taken over a stopped run has yet to say that it runs.
    const os::ProcessIdentity runner{static_cast<pid_t>(record.runner_pid),
                                     record.runner_started_at};
    const bool going = shown.state == "running" || shown.state == "waiting" ||
                       (record.runner_pid != 0 && env.alive(runner));
    if (open.empty() && going && arguments.wait) {
      if (env.stop_signals() > 0) return exit_code(ErrorKind::interrupted);
      BERTH_TRY(env.wait({}, env.now() + kLookEvery));
      continue;
    }
    if (arguments.json) {
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

Result<int> tell_command(os::Env& env, const Arguments& arguments) {
  BERTH_ASSIGN(run::Site site, run::open_site(env));
  const Target target = parse_target(arguments.target);
  BERTH_ASSIGN(const auto record, site.store->find_run(target.run));
  BERTH_ASSIGN(const auto program, passive_program(record));
  if (target.task.empty())
    return fail(ErrorKind::usage, "wanted RUN/TASK, such as {}/1, found '{}'", record.name,
                clip(arguments.target));
  BERTH_ASSIGN(const auto task, find_task(site, record, target.task));
  if (store::final(task.state))
    return fail(ErrorKind::invalid, "{}/{} has ended already: {}", record.name, task.label,
                store::name(task.state));
  const auto answer = run::read_answer(join(arguments.values, " "), run::asked_of(program));
  if (!answer) return std::unexpected(within(arguments.target, answer.error()));
  BERTH_TRY(run::leave_answer(env, run::answers_directory(run_directory(site, record.name)),
                              task.number, *answer));
  const std::string id = fmt::format("{}/{}", record.name, task.label);
  if (arguments.json) {
    print(names_json("told", {id}));
  } else if (state_now(env, record) != "running") {
    print_error(fmt::format("{} is kept; go on with: berth resume {}\n", id, record.name));
  }
  return 0;
}

}  // namespace berth::cli
