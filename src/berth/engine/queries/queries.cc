#include "berth/engine/queries/queries.h"

#include <algorithm>

#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/run_state.h"
#include "berth/run/state/find_run.h"
#include "berth/run/state/run_end.h"
#include "berth/run/state/run_labels.h"

namespace berth::engine {
namespace {

/// A summary has the failed tasks and the front of several goals. Otherwise not one of 100,000 is
/// read.
bool summary_needs_tasks(const store::RunRecord& record, const experiment::Program& program) {
  return record.counts.failed > 0 || !program.further_goals.empty();
}

/// If a trial has several budgets, these are the reports of the last one.
Result<std::vector<Curve>> read_curves(run::Context& context, const RunDetails& run,
                                       const Order& trials) {
  std::vector<Curve> curves;
  for (const auto* task : trials) {
    Curve& curve = curves.emplace_back();
    curve.label = task->label;
    curve.stopped_early = task->cause == exec::Cause::stopped_early;
    BERTH_ASSIGN(const auto metrics, context.store->metrics(run.shown.record.id, task->number));
    for (const auto& metric : metrics)
      if (metric.token == task->token && metric.name == run.program.goal->metric)
        curve.values.push_back(metric.value);
  }
  return curves;
}

void keep_first(Order& order, std::size_t most) {
  if (order.size() > most) order.resize(most);
}

Status check_goal(const RunDetails& run) {
  if (run.program.goal) return {};
  return fail(ErrorKind::invalid, "{} has no goal to draw", run.shown.record.name);
}

}  // namespace

Result<std::vector<ShownRun>> list_runs(run::Context& context, bool with_labels) {
  BERTH_ASSIGN(auto records, context.store->runs());
  std::vector<ShownRun> runs;
  for (auto& record : records) {
    ShownRun& run = runs.emplace_back();
    run.state = state_now(*context.env, record, context.state_directory);
    if (with_labels) {  // a list of runs comes without what they were submitted with
      const auto whole = context.store->find_run(record.name);
      run.labels = whole ? run::labels_of(*whole) : exec::Labels();
    }
    run.record = std::move(record);
  }
  return runs;
}

Result<RunDetails> details_of(run::Context& context, const std::string& name,
                              const DetailsWanted& wanted) {
  RunDetails details;
  auto& record = details.shown.record;
  BERTH_ASSIGN(record, run::find_run(context, name));
  details.shown.state = state_now(*context.env, record, context.state_directory);
  BERTH_ASSIGN(details.program, program_of(record));
  if (wanted.tasks || summary_needs_tasks(record, details.program)) {
    BERTH_ASSIGN(details.tasks, context.store->tasks(record.id));
  }
  BERTH_ASSIGN(details.shown.used, context.store->usage(record.id));
  if (wanted.most_failures > 0) {
    BERTH_ASSIGN(details.shown.failures,
                 failures_of(context, record, details.tasks, wanted.most_failures));
  }
  return details;
}

Result<BestTrial> best_of(run::Context& context, const std::string& name) {
  BestTrial found;
  BERTH_ASSIGN(found.record, run::find_run(context, name));
  BERTH_ASSIGN(found.program, program_of(found.record));
  const auto& goal = found.program.goal;
  BERTH_ASSIGN(const auto tasks, context.store->tasks(found.record.id));
  if (!goal) return fail(ErrorKind::invalid, "{}", no_goal_text(found.record, tasks));
  const auto* best = best_task(tasks, found.program);
  if (best == nullptr) {
    const bool infeasible = std::ranges::any_of(tasks, [&](const auto& task) {
      return task.state == store::TaskState::done && experiment::score(*goal, task.metrics);
    });
    if (infeasible)
      return fail(ErrorKind::busy, "{}: no finished trial meets all constraints yet", name);
    return fail(ErrorKind::busy, "{}: no trial has finished with a value of {} yet", name,
                goal->metric);
  }
  found.task = *best;
  for (const auto* task : front_of(sorted_trials(tasks, found.program), found.program))
    found.front.push_back(*task);
  return found;
}

Result<ShownRun> wait_for(run::Context& context, const std::string& name,
                          std::optional<Mono> until) {
  constexpr Duration kPollInterval = std::chrono::milliseconds(100);
  os::Env& env = *context.env;
  for (;;) {
    BERTH_ASSIGN(const auto record, run::find_run(context, name));
    const std::string state = state_now(env, record, context.state_directory);
    if (state == "interrupted")
      return fail(ErrorKind::stale, "{}: {}", record.name, interrupted_text(record));
    if (!is_under_way(state)) return ShownRun{record, state};
    if (until && env.now() >= *until)
      return fail(ErrorKind::busy, "{} is {} still: {}", record.name, state,
                  counts_text(record.counts));
    if (env.stop_signals() > 0) return fail(ErrorKind::interrupted, "stopped");
    const Mono soon = env.now() + kPollInterval;
    BERTH_TRY(env.wait({}, until && *until < soon ? *until : soon));
  }
}

Result<std::vector<Curve>> leading_curves(run::Context& context, const RunDetails& run,
                                          std::size_t most) {
  BERTH_TRY(check_goal(run));
  Order leading = sorted_trials(run.tasks, run.program);
  std::erase_if(leading, [&](const auto* task) { return !score_of(*task, run.program); });
  keep_first(leading, most);
  return read_curves(context, run, leading);
}

Result<std::vector<Curve>> curves_of(run::Context& context, const RunDetails& run,
                                     std::size_t most) {
  BERTH_TRY(check_goal(run));
  Order shown, cut;
  for (const auto* task : sorted_trials(run.tasks, run.program))
    (task->cause == exec::Cause::stopped_early ? cut : shown).push_back(task);
  std::ranges::sort(cut, std::greater{}, [](const auto* task) { return task->number.value; });
  keep_first(shown, most);
  keep_first(cut, most);
  shown.insert(shown.end(), cut.begin(), cut.end());
  return read_curves(context, run, shown);
}

Result<TaskPlace> task_place(run::Context& context, std::string_view path) {
  const auto [run_name, label] = parse_task_path(path);
  BERTH_ASSIGN(const auto run, run::find_run(context, run_name));
  BERTH_ASSIGN(const auto task, run::find_task(context, run, label.empty() ? "1" : label));
  BERTH_ASSIGN(auto report, run::report_of(context, run, task));
  return TaskPlace{run.name + "/" + task.label, std::move(report)};
}

Asked asked_of(const store::RunRecord& run) {
  auto invocation = run::invocation_of(run);
  return {std::move(invocation.program), std::move(invocation.arguments), run::labels_of(run)};
}

Result<int> exit_code_of(run::Context& context, const store::RunRecord& run) {
  return run::exit_code_of(*context.store, run);
}

}  // namespace berth::engine
