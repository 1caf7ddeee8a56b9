#include "berth/engine/studies/outside_trials.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/run_state.h"
#include "berth/experiment/own_point.h"
#include "berth/run/drive/passive_worker.h"
#include "berth/run/state/find_run.h"
#include "berth/run/studies/study.h"
#include "berth/run/trials/enqueued.h"

namespace berth::engine {
namespace {

std::string answers_of(const Context& context, const store::RunRecord& run) {
  return run::answers_directory(run_directory(context, run.name));
}

Result<experiment::Program> passive_program(const store::RunRecord& run) {
  BERTH_ASSIGN(auto program, program_of(run));
  if (run.kind == run::kStudy)
    return fail(ErrorKind::invalid,
                "{} is a study: ask for its trials and report their results with berth study, or "
                "with berth.load_study(\"{}\") in Python",
                run.name, run.name);
  if (!program.passive)
    return fail(ErrorKind::invalid, "{} is not passive: its trials report for themselves",
                run.name);
  return program;
}

/// The answers are read before the tasks: an answer is removed only once its task is recorded as
/// ended.
Result<std::vector<store::TaskRecord>> open_trials(const Context& context,
                                                   const store::RunRecord& run) {
  const auto answered = run::answered(*context.env, answers_of(context, run));
  BERTH_ASSIGN(auto tasks, context.store->tasks(run.id));
  std::erase_if(tasks, [&](const auto& task) {
    return task.state != store::TaskState::running ||
           std::ranges::find(answered, task.number) != answered.end();
  });
  return tasks;
}

/// The study's search takes the points without a runner.
Status add_to_study(const Context& context, EnqueuedPoints& added) {
  BERTH_ASSIGN(auto study, run::Study::open(*context.store, *context.env, added.run,
                                            run::runs_directory(context.state_directory)));
  for (auto& point : added.points) {
    BERTH_ASSIGN(point, study.check_point(std::move(point)));
  }
  for (const auto& point : added.points) {
    BERTH_ASSIGN(const TaskNumber number, study.enqueue(point));
    added.trials.push_back(fmt::format("{}/{}", added.run, study.trial(number).label));
  }
  added.is_awaited = true;
  return {};
}

/// Leaves the points for the runner of an experiment.
Status add_to_run(const Context& context, const store::RunRecord& run, EnqueuedPoints& added) {
  os::Env& env = *context.env;
  if (!adaptive(added.program.search))
    return fail(ErrorKind::invalid,
                "{}: its trials are fixed; only the methods auto, gp, cma-es, tpe, nsga2 and "
                "external accept further trials",
                run.name);
  const auto over = [](const store::RunRecord& record) {
    return record.state == store::RunState::done || record.state == store::RunState::failed;
  };
  const auto refused = [&] {
    return fail(ErrorKind::invalid, "{} has ended and starts no more trials", run.name);
  };
  if (over(run)) return refused();
  for (auto& point : added.points) {
    BERTH_ASSIGN(point, check_own_point(added.program, std::move(point), false));
  }
  std::vector<std::string> files;
  for (const auto& point : added.points) {
    BERTH_ASSIGN(files.emplace_back(),
                 run::leave_point(env, run_directory(context, run.name), point));
  }
  // Its runner may have looked for the last time just before.
  BERTH_ASSIGN(const auto now, context.store->find_run(run.name));
  std::size_t left = 0;
  for (const auto& file : files) left += over(now) && env.remove_file(file) ? 1 : 0;
  if (left > 0) return refused();
  added.is_awaited = is_under_way(state_now(env, now));
  return {};
}

}  // namespace

Result<WaitingTrials> waiting_trials(Context& context, const std::string& run, bool wait) {
  constexpr Duration kLookEvery = std::chrono::milliseconds(20);
  os::Env& env = *context.env;
  for (;;) {
    BERTH_ASSIGN(auto record, run::find_run(context, run));
    BERTH_ASSIGN(auto program, passive_program(record));
    BERTH_ASSIGN(auto open, open_trials(context, record));
    auto state = state_now(env, record);
    // A runner that has just taken over a stopped run has not recorded yet that it runs.
    const os::ProcessIdentity runner{static_cast<pid_t>(record.runner_pid),
                                     record.runner_started_at};
    const bool going = is_under_way(state) || (record.runner_pid != 0 && env.alive(runner));
    if (!open.empty() || !going || !wait)
      return WaitingTrials{
          {std::move(record), std::move(state)}, std::move(program), std::move(open)};
    if (env.stop_signals() > 0) return fail(ErrorKind::interrupted, "interrupted");
    BERTH_TRY(env.wait({}, env.now() + kLookEvery));
  }
}

Result<StoredResult> store_result(Context& context, const std::string& trial,
                                  std::string_view result) {
  const TaskPath path = parse_task_path(trial);
  BERTH_ASSIGN(const auto record, run::find_run(context, path.run));
  BERTH_ASSIGN(const auto program, passive_program(record));
  if (path.task.empty())
    return fail(ErrorKind::usage, "expected RUN/TASK, such as {}/1, got '{}'", record.name,
                clip(trial));
  BERTH_ASSIGN(const auto task, run::find_task(context, record, path.task));
  if (store::final(task.state))
    return fail(ErrorKind::invalid, "{}/{} has ended already: {}", record.name, task.label,
                store::name(task.state));
  const auto answer = run::read_answer(result, run::asked_of(program));
  if (!answer) return std::unexpected(within(trial, answer.error()));
  BERTH_TRY(run::leave_answer(*context.env, answers_of(context, record), task.number, *answer));
  return StoredResult{record.name, fmt::format("{}/{}", record.name, task.label),
                      is_under_way(state_now(*context.env, record))};
}

Result<EnqueuedPoints> enqueue(Context& context, const std::string& run,
                               const std::vector<std::string>& points, std::string_view option) {
  EnqueuedPoints added;
  for (const auto& text : points) {
    auto point = experiment::read_own_point(text);
    if (!point) return std::unexpected(within(option, std::move(point).error()));
    added.points.push_back(*std::move(point));
  }
  BERTH_ASSIGN(const auto record, run::find_run(context, run));
  added.run = record.name;
  BERTH_ASSIGN(added.program, program_of(record));
  if (record.kind == "flow" || !added.program.goal)
    return fail(ErrorKind::invalid, "{} searches nothing", record.name);
  BERTH_TRY(record.kind == run::kStudy ? add_to_study(context, added)
                                       : add_to_run(context, record, added));
  return added;
}

}  // namespace berth::engine
