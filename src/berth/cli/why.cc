// berth why: what happened to a run, or to a task attempt by attempt, and what it waits for.
#include <algorithm>

#include "berth/base/units.h"
#include "berth/cli/autoscale_view.h"
#include "berth/cli/explain.h"
#include "berth/cli/explain_run.h"
#include "berth/cli/flow_view.h"
#include "berth/cli/json_output.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/cli/run_view.h"
#include "berth/cli/shared_options.h"
#include "berth/flow/attempt_request.h"
#include "berth/run/attempt_history.h"
#include "berth/run/clusters.h"
#include "berth/run/earlier_task.h"
#include "berth/run/expected_starts.h"
#include "berth/run/find_run.h"
#include "berth/run/skips.h"
#include "berth/run/study.h"

namespace berth::cli {
namespace {

struct WhyOptions {
  bool json = false;
  std::string path;

  void add_to(Options& options) {
    options.json(json);
    add_run_or_last(options, path, "RUN[/TASK]",
                    "Run or task, such as digits-3/17, or autoscale/SERVER");
    options.footer(
        "Examples:\n"
        "  berth why                     the latest run\n"
        "  berth why digits-3/17\n"
        "  berth why autoscale/chat      the decisions of berth autoscale");
  }
};

/// What a task wants of a machine, and how many tasks of its run may run side by side; or what the
/// task waits for before that.
struct TaskRequest {
  machine::Request request;
  std::int64_t parallel = 0;
  std::string gpus;
  std::string waits;
};

std::string side_by_side_text(const TaskRequest& wanted) {
  return fmt::format("the run has its {} tasks in parallel already", wanted.parallel);
}

/// That of the attempt of this number, as the file says it.
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
std::optional<std::string> waits_elsewhere(os::Env& env, const run::Context& context,
                                           const store::RunRecord& run, const TaskRequest& wanted) {
  constexpr std::size_t kTextMost = 1 << 20;
  const auto text =
      env.read_file(run::waits_file(run::run_directory(context, run.name)), kTextMost);
  if (!text) return std::nullopt;
  if (!text->empty()) return *text;
  if (wanted.parallel > 0 && run.counts.running >= wanted.parallel)
    return side_by_side_text(wanted);
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
Result<std::string> why_waiting(os::Env& env, run::Context& context, const store::RunRecord& run,
                                const store::TaskRecord& task) {
  if (run.kind == run::kStudy) return "until a program asks for it";
  const std::string state = state_now(env, run);
  BERTH_ASSIGN(const auto history, run::history_of(*context.store, run.id, task));
  BERTH_ASSIGN(TaskRequest wanted, request_of(context, run, task, history.attempt()));
  if (!wanted.waits.empty()) return wanted.waits;
  if (state == "interrupted") return interrupted_text(run);
  if (!is_under_way(state))
    return fmt::format("the run is {}; resume it with: berth resume {}", state, run.name);
  if (auto elsewhere = waits_elsewhere(env, context, run, wanted)) return *std::move(elsewhere);
  BERTH_ASSIGN(const auto capacity, machine::discover(env, context.capacity));
  BERTH_ASSIGN(auto ledger, machine::Ledger::open(env, context.ledger_directory));
  BERTH_ASSIGN(const auto entries, ledger.entries());
  BERTH_TRY(run::find_devices(context, wanted.request.resources, wanted.gpus));
  const auto host = machine::host_of(capacity, context.devices ? &*context.devices : nullptr);
  if (history != run::AttemptHistory())
    wanted.request.resources =
        run::grown(wanted.request.resources, {}, history, host.total.resources);
  machine::Machine machine(host.total, host.links);
  const auto held = machine::occupy_all(machine, host, entries);
  const auto fits = machine.dry_run(wanted.request);
  if (!fits)
    return fits.error().message +
           (context.devices ? machine::unusable_text(*context.devices) : "") +
           start_text(context, run, host, entries);
  if (wanted.parallel > 0 && run.counts.running >= wanted.parallel)
    return side_by_side_text(wanted);
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

std::string attempt_text(const store::AttemptRecord& attempt) {
  std::string text = fmt::format("  attempt {}: {}", attempt.number, format_utc(attempt.started));
  if (!attempt.ended) return text + ", running\n";
  text += fmt::format(", {} after {}", cause_text(attempt),
                      format_duration(*attempt.ended - attempt.started));
  text += fmt::format(", cpu {}", format_duration(from_ms(attempt.cpu_ms)));
  if (attempt.peak_mem > 0) text += fmt::format(", peak mem {}", format_bytes(attempt.peak_mem));
  if (!attempt.host.empty()) text += fmt::format(", on {}", attempt.host);
  if (!attempt.devices.empty()) text += fmt::format(", devices {}", attempt.devices);
  if (!attempt.detail.empty()) text += fmt::format("\n    {}", attempt.detail);
  return text + "\n";
}

bool run_is_passive(const store::RunRecord& run) {
  const auto program = program_of(run);
  return program && program->passive;
}

std::string summary(const store::TaskRecord& task) {
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

Result<int> explain_run(os::Env& env, run::Context& context, const store::RunRecord& record,
                        bool json) {
  BERTH_ASSIGN(const auto run, explanation_of(env, context, record, [&](const auto& task) {
                 return why_waiting(env, context, record, task);
               }));
  print(json ? why_run_json(run) : explanation_text(run));
  return 0;
}

}  // namespace

Result<int> explain(os::Env& env, const std::string& of, bool json) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  const TaskPath path = parse_task_path(of);
  auto found = run::find_run(context, path.run);
  if (!found && found.error().kind == ErrorKind::not_found && path.run == "autoscale" &&
      !path.task.empty())
    return explain_decisions(env, context.state_directory, path.task, json);
  BERTH_ASSIGN(const auto record, std::move(found));
  if (path.task.empty()) return explain_run(env, context, record, json);
  BERTH_ASSIGN(const auto task, find_task(context, record, path.task));
  BERTH_ASSIGN(const auto attempts, context.store->attempts(record.id, task.number));
  BERTH_ASSIGN(const auto because, why_it_ran(context, record, task));
  std::string text = summary(task);
  if (task.state == store::TaskState::running && record.kind == run::kStudy)
    text += fmt::format("; a program on {} runs it", task.host);
  else if (task.state == store::TaskState::running && run_is_passive(record))
    text += fmt::format("; report its score with: berth tell {}/{} VALUE", record.name, task.label);
  if (task.state == store::TaskState::waiting || task.state == store::TaskState::running) {
    if (task.state == store::TaskState::waiting || !is_under_way(state_now(env, record))) {
      BERTH_ASSIGN(const std::string reason, why_waiting(env, context, record, task));
      text += ": " + reason;
    }
  }
  BERTH_ASSIGN(const auto report, run::report_of(context, record, task));
  if (json) {
    print(why_json(record, task, attempts, text, because, report));
    return 0;
  }
  print(fmt::format("{}/{}: {}\n", record.name, task.label, text));
  for (const auto& [name, value] : report.params) print(fmt::format("  {} = {}\n", name, value));
  for (const auto& line : because) print(fmt::format("  {}\n", line));
  for (const auto& attempt : attempts) print(attempt_text(attempt));
  if (task.state == store::TaskState::failed)
    print(report_text(report) + fmt::format("  more: berth logs {}/{}\n", record.name, task.label));
  return 0;
}

namespace {

Result<int> why(os::Env& env, const WhyOptions& options) {
  return explain(env, options.path, options.json);
}

}  // namespace

Command why_command() {
  return command("why", "Explain why a run or task waits, failed or stopped", why);
}

}  // namespace berth::cli
