#include "berth/engine/queries/run_explanation.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/engine/queries/flow_steps.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/run_state.h"
#include "berth/exec/formats.h"
#include "berth/run/flows/flow_run.h"
#include "berth/run/state/run_end.h"
#include "berth/run/studies/study.h"

namespace berth::engine {
namespace {

constexpr std::size_t kMostNamed = 10;
constexpr std::size_t kMostText = 64 << 10;
/// Reasons are looked up for this many steps of a flow at most.
constexpr std::size_t kMostSteps = 50;

void add(std::vector<TaskGroup>& groups, const std::string& reason, const std::string& id,
         std::int64_t count = 1) {
  auto group = std::ranges::find(groups, reason, &TaskGroup::reason);
  if (group == groups.end())
    group = groups.insert(groups.end(), {.reason = reason, .detail = {}, .tasks = {}});
  group->count += count;
  if (group->tasks.size() < kMostNamed) group->tasks.push_back(id);
}

Result<std::vector<TaskGroup>> failed_by_cause(run::Context& context, const store::RunRecord& run,
                                               const std::vector<store::TaskRecord>& tasks) {
  std::vector<TaskGroup> groups;
  for (const auto& task : tasks) {
    if (task.state != store::TaskState::failed) continue;
    const std::size_t known = groups.size();
    add(groups, cause_text(task), run.name + "/" + task.label);
    if (groups.size() == known) continue;
    BERTH_ASSIGN(const auto attempts, context.store->attempts(run.id, task.number));
    if (!attempts.empty()) groups.back().detail = attempts.back().detail;
  }
  std::ranges::stable_sort(groups, std::greater{}, &TaskGroup::count);
  return groups;
}

/// Tasks of one step of a flow, and all trials of an experiment, wait for the same.
Result<std::vector<TaskGroup>> waiting_by_reason(const store::RunRecord& run,
                                                 const std::vector<store::TaskRecord>& tasks,
                                                 const ReasonOf& reason_of) {
  struct Step {
    std::string name;
    const store::TaskRecord* first;
    std::int64_t count;
  };
  std::vector<Step> steps;
  for (const auto& task : tasks) {
    if (task.state != store::TaskState::waiting) continue;
    const std::string name(run.kind == "flow" ? step_name(task.label) : "");
    const auto step = std::ranges::find(steps, name, &Step::name);
    if (step != steps.end())
      ++step->count;
    else if (steps.size() < kMostSteps)
      steps.push_back({name, &task, 1});
  }
  std::vector<TaskGroup> groups;
  for (const auto& step : steps) {
    BERTH_ASSIGN(const std::string reason, reason_of(*step.first));
    add(groups, reason, run.name + "/" + step.first->label, step.count);
  }
  return groups;
}

Result<std::int64_t> allowed_failures(const store::RunRecord& run) {
  if (run.kind != "flow") {
    BERTH_ASSIGN(const auto program, program_of(run));
    return program.allow_failures;
  }
  BERTH_ASSIGN(const auto program, run::flow_program(run.spec_json));
  if (program.allow_failures) return *program.allow_failures;
  BERTH_ASSIGN(const auto flow, flow_of(run));
  return flow.allow_failures;
}

std::string allowed_text(std::int64_t allowed) {
  if (allowed == exec::kAnyFailures) return "any number of failures is allowed";
  return allowed == 0 ? "no failure is allowed (--allow-failures)"
                      : fmt::format("at most {} may fail (--allow-failures)", allowed);
}

std::string stopped_text(const store::RunRecord& run, const std::string& after) {
  const auto by = run::stopped_by(run);
  const std::string how = by == run::StoppedBy::interrupt ? "Ctrl-C stopped it"
                          : by == run::StoppedBy::request ? "berth stop, or a signal, stopped it"
                                                          : "it was stopped";
  return fmt::format("{}{}{}; continue with: berth resume {}", how, after,
                     run.error.empty() ? "" : ": " + run.error, run.name);
}

Result<std::string> why_of(const store::RunRecord& run, const std::string& state) {
  const store::Counts& counts = run.counts;
  const std::string after = run.started && run.ended
                                ? " after " + format_duration(*run.ended - *run.started)
                                : std::string();
  if (state == "interrupted") return interrupted_text(run);
  switch (run.state) {
    case store::RunState::queued: return std::string("it has not had an allocation yet");
    case store::RunState::running:
      return counts.running > 0 ? fmt::format("{} of its tasks {} now", counts.running,
                                              counts.running == 1 ? "runs" : "run")
                                : std::string("none of its tasks runs now");
    case store::RunState::stopped: return stopped_text(run, after);
    case store::RunState::done:
    case store::RunState::failed: break;
  }
  if (counts.failed == 0)
    return fmt::format("it ended{}{}", after, run.error.empty() ? "" : ": " + run.error);
  BERTH_ASSIGN(const auto allowed, allowed_failures(run));
  const bool other = run.state == store::RunState::failed && counts.failed <= allowed;
  return fmt::format("it ended{}: {}", after,
                     other ? run.error
                           : fmt::format("{} of {} failed, and {}", counts.failed, counts.total(),
                                         allowed_text(allowed)));
}

}  // namespace

Result<RunExplanation> explanation_of(run::Context& context, const store::RunRecord& record,
                                      const ReasonOf& reason_of) {
  RunExplanation explanation{.record = record,
                             .state = state_now(*context.env, record, context.state_directory)};
  BERTH_ASSIGN(explanation.why, why_of(record, explanation.state));
  BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
  BERTH_ASSIGN(explanation.failed, failed_by_cause(context, record, tasks));
  if (is_under_way(explanation.state)) {
    BERTH_ASSIGN(explanation.waiting, waiting_by_reason(record, tasks, reason_of));
  }
  const std::string deleted = run::deleted_files_file(run::run_directory(context, record.name));
  explanation.deleted_files = context.env->read_file(deleted, kMostText).value_or("");
  if (!store::is_open(record.state)) {
    BERTH_ASSIGN(explanation.exit_code, run::exit_code_of(*context.store, record));
  }
  return explanation;
}

}  // namespace berth::engine
