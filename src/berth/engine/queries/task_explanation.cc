#include "berth/engine/queries/task_explanation.h"

#include <algorithm>

#include "berth/engine/queries/flow_steps.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/run_state.h"
#include "berth/flow/attempt_request.h"
#include "berth/run/drive/attempt_history.h"
#include "berth/run/drive/expected_starts.h"
#include "berth/run/flows/earlier_task.h"
#include "berth/run/flows/flow_run.h"
#include "berth/run/state/clusters.h"
#include "berth/run/state/find_run.h"
#include "berth/run/state/skips.h"
#include "berth/run/studies/study.h"

namespace berth::engine {
namespace {

/// What a task requests of a machine, and how many tasks of its run may run in parallel; or what
/// the task waits for before that.
struct TaskRequest {
  machine::Request request;
  std::int64_t parallel = 0;
  std::string gpus;
  std::string waits;
};

std::string parallel_limit_text(const TaskRequest& request) {
  return fmt::format("the run has its {} tasks in parallel already", request.parallel);
}

/// The request of the attempt with this number, as the file says it.
Result<TaskRequest> request_of(run::Context& context, const store::RunRecord& run,
                               const store::TaskRecord& task, std::int64_t attempt) {
  if (run.kind != "flow") {
    BERTH_ASSIGN(const auto program, experiment::from_json_text(run.spec_json));
    return TaskRequest{
        {program.resources, run.name, program.selection}, program.parallel, program.gpus, {}};
  }
  BERTH_ASSIGN(const auto program, run::flow_program(run.spec_json));
  BERTH_ASSIGN(const auto flow, run::read_flow(program));
  BERTH_ASSIGN(const auto tasks, context.store->tasks(run.id));
  const auto step = std::ranges::find(flow.steps, step_name(task.label), &flow::Step::name);
  if (step == flow.steps.end())
    return fail(ErrorKind::corrupt, "no step of {} makes {}", run.name, task.label);
  std::string waits = waits_for(flow, step_counts(flow, run, tasks), task.label);
  if (const auto* cause = first_failed_before(flow, tasks, task.label))
    waits = fmt::format("{}/{} failed: {}; {}; berth why {}/{}", run.name, cause->label,
                        cause_text(*cause), waits, run.name, cause->label);
  return TaskRequest{{flow::resources_of(*step, attempt), run.name, step->selection},
                     program.parallel,
                     {},
                     std::move(waits)};
}

/// Why a task of a run on clusters waits, as its runner found; nullopt where the run is on this
/// machine.
std::optional<std::string> waits_elsewhere(const run::Context& context, const store::RunRecord& run,
                                           const TaskRequest& request) {
  constexpr std::size_t kTextMost = 1 << 20;
  const auto text =
      context.env->read_file(run::waits_file(run::run_directory(context, run.name)), kTextMost);
  if (!text) return std::nullopt;
  if (!text->empty()) return *text;
  if (request.parallel > 0 && run.counts.running >= request.parallel)
    return parallel_limit_text(request);
  return "it waits for free resources in addition to those that the run has on its clusters; see "
         "berth top";
}

/// When the run is expected to get its turn, where it waits in this machine's queue.
std::string start_text(run::Context& context, const store::RunRecord& run,
                       const machine::Host& host, std::span<const machine::LedgerEntry> entries) {
  const auto starts = run::expected_starts(context, host, entries);
  auto start = starts.begin();
  for (const auto& entry : entries) {
    if (!entry.waiting) continue;
    if (entry.label == run.name && entry.user == context.env->user())
      return fmt::format("; {}: {}", to_text(*start, context.env->wall()), start->because);
    ++start;
  }
  return "";
}

/// Why the task is not running now: as the runner found on other machines, or by asking this
/// machine in the way that the runner does.
Result<std::string> why_waiting(run::Context& context, const store::RunRecord& run,
                                const store::TaskRecord& task) {
  os::Env& env = *context.env;
  if (run.kind == run::kStudy) return "until a program asks for it";
  const std::string state = state_now(env, run, context.state_directory);
  BERTH_ASSIGN(const auto history, run::history_of(*context.store, run.id, task));
  BERTH_ASSIGN(TaskRequest request, request_of(context, run, task, history.attempt()));
  if (!request.waits.empty()) return request.waits;
  if (state == "interrupted") return interrupted_text(run);
  if (!is_under_way(state))
    return fmt::format("the run is {}; resume it with: berth resume {}", state, run.name);
  if (auto elsewhere = waits_elsewhere(context, run, request)) return *std::move(elsewhere);
  BERTH_ASSIGN(const auto capacity, machine::discover(env, context.capacity));
  BERTH_ASSIGN(auto ledger, machine::Ledger::open(env, context.ledger_directory));
  BERTH_ASSIGN(const auto entries, ledger.entries());
  BERTH_TRY(run::find_devices(context, request.request.resources, request.gpus));
  const auto host = machine::host_of(capacity, context.devices ? &*context.devices : nullptr);
  if (history != run::AttemptHistory())
    request.request.resources =
        run::grown(request.request.resources, {}, history, host.total.resources);
  machine::Machine machine(host.total, host.links);
  const auto held = machine::occupy_all(machine, host, entries);
  const auto fits = machine.dry_run(request.request);
  if (!fits)
    return fits.error().message +
           (context.devices ? machine::unusable_text(*context.devices) : "") +
           start_text(context, run, host, entries);
  if (request.parallel > 0 && run.counts.running >= request.parallel)
    return parallel_limit_text(request);
  return std::string("it is next; it may wait for a pause before the next attempt");
}

/// Why a task of a flow ran, or did not have to.
Result<std::vector<std::string>> why_it_ran(run::Context& context, const store::RunRecord& run,
                                            const store::TaskRecord& task) {
  std::vector<std::string> lines;
  if (run.kind != "flow") return lines;
  if (task.state == store::TaskState::cached) {
    const auto result = context.store->result(task.digest);
    if (result) lines.push_back(fmt::format("as {} wrote it", result->origin));
    return lines;
  }
  if (task.state == store::TaskState::skipped) {
    auto because = run::skipped_because(task);
    if (because.empty()) because = "its `when` is false, or one of its inputs was skipped";
    lines.push_back("nothing to do: " + because);
    return lines;
  }
  if (const auto flow = flow_of(run)) {
    const auto step = std::ranges::find(flow->steps, step_name(task.label), &flow::Step::name);
    if (step != flow->steps.end()) lines = step->automatic;
  }
  if (run::depended_on(task).empty()) return lines;
  if (task.digest.empty()) lines.push_back("a step without outputs runs each time");
  BERTH_ASSIGN(const auto runs, context.store->runs());
  const auto earlier = run::earlier_task(
      context, runs, std::string_view(run.name).substr(0, run.name.rfind('-')), run.id, task.label);
  if (!earlier) {
    lines.push_back("no earlier run of the flow has this task");
    return lines;
  }
  BERTH_ASSIGN(const auto changes, run::changes_since(*earlier, task.depends));
  lines.insert(lines.end(), changes.begin(), changes.end());
  // The result of a task that failed is in the cache only where it found no place.
  const bool found_no_place =
      task.state == store::TaskState::failed && context.store->result(task.digest);
  if (changes.empty() && !task.digest.empty())
    lines.push_back(
        fmt::format("nothing has changed since {}, but its result {}", earlier->run,
                    found_no_place ? "could not be put in its place" : "was not in the cache"));
  return lines;
}

bool run_is_passive(const store::RunRecord& run) {
  const auto program = program_of(run);
  return program && program->passive;
}

std::string summary_of(const store::TaskRecord& task) {
  switch (task.state) {
    case store::TaskState::done:
      return task.attempts > 1 ? fmt::format("done at attempt {}", task.attempts) : "done";
    case store::TaskState::failed:
      return fmt::format("failed: {}{}", cause_text(task),
                         task.attempts > 1 ? fmt::format(", {} times tried", task.attempts) : "");
    case store::TaskState::stopped: return "stopped with its run";
    case store::TaskState::running: return "running";
    case store::TaskState::cached: return "taken from the cache";
    case store::TaskState::skipped: return "skipped";
    case store::TaskState::waiting: break;
  }
  return task.attempts > 0 ? fmt::format("waiting to be tried again, after {}", cause_text(task))
                           : "waiting";
}

/// What happened to the task, and what it waits for.
Result<std::string> why_text(run::Context& context, const store::RunRecord& run,
                             const store::TaskRecord& task) {
  using enum store::TaskState;
  const std::string summary = summary_of(task);
  const bool is_open = task.state == waiting || task.state == running;
  std::string text = summary;
  if (task.state == running && run.kind == run::kStudy)
    text += fmt::format("; a program on {} runs it", task.host);
  else if (task.state == running && run_is_passive(run))
    text += fmt::format("; report its score with: berth tell {}/{} VALUE", run.name, task.label);
  const bool is_under_way_now = is_under_way(state_now(*context.env, run, context.state_directory));
  if (!is_open || (task.state == running && is_under_way_now)) return text;
  BERTH_ASSIGN(const std::string reason, why_waiting(context, run, task));
  return text + ": " + reason;
}

}  // namespace

Result<TaskExplanation> explain_task(run::Context& context, const store::RunRecord& run,
                                     const std::string& label) {
  TaskExplanation explanation{.run = run};
  auto& task = explanation.task;
  BERTH_ASSIGN(task, run::find_task(context, run, label));
  BERTH_ASSIGN(explanation.attempts, context.store->attempts(run.id, task.number));
  BERTH_ASSIGN(explanation.because, why_it_ran(context, run, task));
  BERTH_ASSIGN(explanation.why, why_text(context, run, task));
  BERTH_ASSIGN(explanation.report, run::report_of(context, run, task));
  return explanation;
}

Result<RunExplanation> explain_run(run::Context& context, const store::RunRecord& run) {
  return explanation_of(context, run,
                        [&](const auto& task) { return why_waiting(context, run, task); });
}

}  // namespace berth::engine
