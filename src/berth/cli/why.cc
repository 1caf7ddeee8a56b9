// berth why: what happened to a task, attempt by attempt, and what it waits for.
#include <algorithm>

#include "berth/base/units.h"
#include "berth/cli/flow_view.h"
#include "berth/cli/json_output.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/cli/run_view.h"
#include "berth/run/elsewhere.h"

namespace berth::cli {
namespace {

struct WhyOptions {
  bool json = false;
  std::string target;

  void add_to(Options& options) {
    options.json(json);
    options.value("RUN/TASK", target, "such as digits-3/17").required();
    options.example("berth why digits-3/17");
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
  return fmt::format("the run has its {} tasks side by side already", wanted.parallel);
}

Result<TaskRequest> request_of(run::Site& site, const store::RunRecord& run,
                               const store::TaskRecord& task) {
  if (run.kind != "flow") {
    BERTH_ASSIGN(const auto program, experiment::from_json_text(run.spec_json));
    return TaskRequest{
        {program.resources, run.name, program.selection}, program.parallel, program.gpus, {}};
  }
  BERTH_ASSIGN(const auto program, run::flow_program(run.spec_json));
  BERTH_ASSIGN(const auto flow, run::read_flow(program));
  BERTH_ASSIGN(const auto tasks, site.store->tasks(run.id));
  const auto step = std::ranges::find(flow.steps, step_name(task.label), &flow::Step::name);
  if (step == flow.steps.end())
    return fail(ErrorKind::corrupt, "{} has no step for {}", run.name, task.label);
  return TaskRequest{{step->resources, run.name, step->selection},
                     program.parallel,
                     {},
                     waits_for(flow, step_counts(flow, run, tasks), task.label)};
}

/// Why a task of a run on clusters waits, as its runner found; nullopt where the run is on this
/// machine.
std::optional<std::string> waits_elsewhere(os::Env& env, const run::Site& site,
                                           const store::RunRecord& run, const TaskRequest& wanted) {
  constexpr std::size_t kTextMost = 1 << 20;
  const auto text = env.read_file(run::waits_file(run::run_directory(site, run.name)), kTextMost);
  if (!text) return std::nullopt;
  if (!text->empty()) return *text;
  if (wanted.parallel > 0 && run.counts.running >= wanted.parallel)
    return side_by_side_text(wanted);
  return "it waits for room beside what the run has on its clusters; see berth top";
}

/// Why the task is not running now: as the runner found on other machines, or by asking this
/// machine in the way that the runner does.
Result<std::string> why_waiting(os::Env& env, run::Site& site, const store::RunRecord& run,
                                const store::TaskRecord& task) {
  const std::string state = state_now(env, run);
  BERTH_ASSIGN(const TaskRequest wanted, request_of(site, run, task));
  if (!wanted.waits.empty()) return wanted.waits;
  if (state == "interrupted") return interrupted_text(run);
  if (state != "running")
    return fmt::format("the run is {}; go on with: berth resume {}", state, run.name);
  if (auto elsewhere = waits_elsewhere(env, site, run, wanted)) return *std::move(elsewhere);
  BERTH_ASSIGN(const auto capacity, machine::discover(env, site.capacity));
  BERTH_ASSIGN(auto ledger, machine::Ledger::open(env, site.ledger_directory));
  BERTH_ASSIGN(const auto entries, ledger.entries());
  BERTH_TRY(run::find_devices(site, wanted.request.resources, wanted.gpus));
  const auto host = machine::host_of(capacity, site.devices ? &*site.devices : nullptr);
  machine::Machine machine(host.total, host.links);
  const auto held = machine::occupy_all(machine, host, entries);
  const auto fits = machine.dry_run(wanted.request);
  if (!fits)
    return fits.error().message + (site.devices ? machine::unusable_text(*site.devices) : "");
  if (wanted.parallel > 0 && run.counts.running >= wanted.parallel)
    return side_by_side_text(wanted);
  return std::string("it is next; another try may be due after a pause");
}

/// The task of this name in the latest earlier run of the same flow that came as far as the task.
Result<std::optional<std::pair<std::string, store::TaskRecord>>> earlier_one(
    run::Site& site, const store::RunRecord& run, const std::string& label) {
  using Found = std::optional<std::pair<std::string, store::TaskRecord>>;
  const auto base = [](const std::string& name) { return name.substr(0, name.rfind('-')); };
  BERTH_ASSIGN(const auto runs, site.store->runs());
  for (auto other = runs.rbegin(); other != runs.rend(); ++other) {
    if (other->id >= run.id || other->kind != run.kind || base(other->name) != base(run.name))
      continue;
    auto task = site.store->find_task(other->id, label);
    if (task && !task->depends.empty()) return Found({other->name, *std::move(task)});
  }
  return Found{};
}

/// Why a task of a flow ran, or did not have to.
Result<std::vector<std::string>> why_it_ran(run::Site& site, const store::RunRecord& run,
                                            const store::TaskRecord& task) {
  std::vector<std::string> lines;
  if (run.kind != "flow") return lines;
  if (task.state == store::TaskState::cached) {
    const auto result = site.store->result(task.digest);
    if (result) lines.push_back(fmt::format("as {} wrote it", result->origin));
    return lines;
  }
  if (task.state == store::TaskState::skipped) {
    lines.push_back("nothing to do: its `when` does not hold, or what it takes in was skipped");
    return lines;
  }
  if (task.depends.empty()) return lines;
  if (task.digest.empty()) lines.push_back("a step without outputs runs each time");
  BERTH_ASSIGN(const auto earlier, earlier_one(site, run, task.label));
  if (!earlier) {
    lines.push_back("no earlier run of the flow has it");
    return lines;
  }
  BERTH_ASSIGN(const auto changes, flow::changes(earlier->second.depends, task.depends));
  for (const auto& change : changes)
    lines.push_back(fmt::format("since {}: {}", earlier->first, flow::to_string(change)));
  // The result of a task that failed is in the cache only where it found no place.
  const bool found_no_place =
      task.state == store::TaskState::failed && site.store->result(task.digest);
  if (changes.empty() && !task.digest.empty())
    lines.push_back(
        fmt::format("nothing has changed since {}, but its result {}", earlier->first,
                    found_no_place ? "could not be brought to its place" : "was not in the cache"));
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

Result<int> why(os::Env& env, const WhyOptions& options) {
  BERTH_ASSIGN(run::Site site, run::open_site(env));
  const Target target = parse_target(options.target);
  BERTH_ASSIGN(const auto record, site.store->find_run(target.run));
  if (target.task.empty())
    return fail(ErrorKind::usage, "wanted RUN/TASK, such as {}/1, found '{}'", record.name,
                options.target);
  BERTH_ASSIGN(const auto task, find_task(site, record, target.task));
  BERTH_ASSIGN(const auto attempts, site.store->attempts(record.id, task.number));
  BERTH_ASSIGN(const auto because, why_it_ran(site, record, task));
  std::string text = summary(task);
  if (task.state == store::TaskState::running && run_is_passive(record))
    text += fmt::format("; report its score with: berth tell {}/{} VALUE", record.name, task.label);
  if (task.state == store::TaskState::waiting || task.state == store::TaskState::running) {
    if (task.state == store::TaskState::waiting || state_now(env, record) != "running") {
      BERTH_ASSIGN(const std::string reason, why_waiting(env, site, record, task));
      text += ": " + reason;
    }
  }
  if (options.json) {
    print(why_json(record, task, attempts, text, because));
    return 0;
  }
  print(fmt::format("{}/{}: {}\n", record.name, task.label, text));
  for (const auto& [name, value] : task.params) print(fmt::format("  {} = {}\n", name, value));
  for (const auto& line : because) print(fmt::format("  {}\n", line));
  for (const auto& attempt : attempts) print(attempt_text(attempt));
  return 0;
}

}  // namespace

Command why_command() {
  return command("why", "why a task waits, ran again, failed or was stopped", why);
}

}  // namespace berth::cli
