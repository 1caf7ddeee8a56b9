#include "berth/cli/explain_run.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/flow_view.h"
#include "berth/cli/run_view.h"
#include "berth/exec/formats.h"
#include "berth/run/flow_run.h"
#include "berth/run/run_end.h"
#include "berth/run/study.h"

namespace berth::cli {
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

std::string group_text(const TaskGroup& group, std::string_view did) {
  std::string text = fmt::format("  {} {}: {}\n", group.count, did, group.reason);
  if (!group.detail.empty()) text += fmt::format("    {}\n", group.detail);
  const auto more = group.count - std::ssize(group.tasks);
  const auto& shown = group.tasks;
  if (group.count == 1 || did == "failed")
    text += fmt::format("    {}{}\n", join(shown, ", "),
                        more > 0 ? fmt::format(" and {} more", more) : "");
  return text;
}

}  // namespace

Result<RunExplanation> explanation_of(os::Env& env, run::Context& context,
                                      const store::RunRecord& record, const ReasonOf& reason_of) {
  RunExplanation run{.record = record,
                     .state = state_now(env, record),
                     .why = {},
                     .waiting = {},
                     .failed = {},
                     .deleted_files = {},
                     .exit_code = {}};
  BERTH_ASSIGN(run.why, why_of(record, run.state));
  BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
  BERTH_ASSIGN(run.failed, failed_by_cause(context, record, tasks));
  if (is_under_way(run.state)) {
    BERTH_ASSIGN(run.waiting, waiting_by_reason(record, tasks, reason_of));
  }
  run.deleted_files =
      env.read_file(run::deleted_files_file(run::run_directory(context, record.name)), kMostText)
          .value_or("");
  if (!store::is_open(record.state)) {
    BERTH_ASSIGN(run.exit_code, run::exit_code_of(*context.store, record));
  }
  return run;
}

std::string explanation_text(const RunExplanation& run) {
  std::string text = fmt::format("{}: {}: {}\n  {}\n", run.record.name, run.state,
                                 counts_text(run.record.counts), run.why);
  for (const auto& group : run.waiting) text += group_text(group, "waiting");
  for (const auto& group : run.failed) text += group_text(group, "failed");
  if (!run.failed.empty())
    text += fmt::format("  more: berth why {}\n", run.failed.front().tasks.front());
  for (const auto line : split(run.deleted_files, '\n'))
    if (!line.empty()) text += fmt::format("  {}\n", line);
  return text;
}

}  // namespace berth::cli
