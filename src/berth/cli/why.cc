// berth why: what became of a task, attempt by attempt, and what it waits for.
#include "berth/base/units.h"
#include "berth/cli/commands.h"
#include "berth/cli/json_output.h"
#include "berth/cli/table.h"

namespace berth::cli {
namespace {

/// Why nothing runs it now, by asking the machine the way the runner does.
Result<std::string> why_waiting(os::Env& env, run::Site& site, const store::RunRecord& run,
                                const experiment::Program& program) {
  const std::string state = state_now(env, run);
  if (state == "interrupted")
    return fmt::format("its runner died; go on with: berth resume {}", run.name);
  if (state != "running")
    return fmt::format("the run is {}; go on with: berth resume {}", state, run.name);
  BERTH_ASSIGN(const auto capacity, machine::discover(env, site.capacity));
  BERTH_ASSIGN(auto ledger, machine::Ledger::open(env, site.ledger_directory));
  BERTH_ASSIGN(const auto entries, ledger.entries());
  BERTH_TRY(run::find_devices(site, program.resources));
  const auto host = machine::host_of(capacity, site.devices ? &*site.devices : nullptr);
  machine::Machine machine(host.total, host.links);
  const auto held = machine::occupy_all(machine, host, entries);
  const auto fits = machine.dry_run({program.resources, run.name, program.slot_sizes});
  if (!fits)
    return fits.error().message + (site.devices ? machine::out_of_service_text(*site.devices) : "");
  if (program.parallel > 0 && run.counts.running >= program.parallel)
    return fmt::format("the run has its {} tasks side by side already", program.parallel);
  return std::string("it is next; another try may be due after a pause");
}

std::string attempt_text(const store::AttemptRecord& attempt) {
  std::string text = fmt::format("  attempt {}: {}", attempt.number, format_utc(attempt.started));
  if (!attempt.ended) return text + ", running\n";
  text += fmt::format(", {} after {}", attempt.cause,
                      format_duration(*attempt.ended - attempt.started));
  text += fmt::format(", cpu {}", format_duration(from_ms(attempt.cpu_ms)));
  if (attempt.peak_mem > 0) text += fmt::format(", peak mem {}", format_bytes(attempt.peak_mem));
  if (!attempt.host.empty()) text += fmt::format(", on {}", attempt.host);
  if (!attempt.devices.empty()) text += fmt::format(", devices {}", attempt.devices);
  if (!attempt.detail.empty()) text += fmt::format("\n    {}", attempt.detail);
  return text + "\n";
}

std::string summary(const store::TaskRecord& task) {
  switch (task.state) {
    case store::TaskState::done:
      return task.attempts > 1 ? fmt::format("done at attempt {}", task.attempts) : "done";
    case store::TaskState::failed:
      return fmt::format("failed: {}{}", task.cause,
                         task.attempts > 1 ? fmt::format(", {} times tried", task.attempts) : "");
    case store::TaskState::stopped: return "stopped with its run";
    case store::TaskState::running: return "running";
    case store::TaskState::cached: return "taken from the cache";
    case store::TaskState::waiting: break;
  }
  return task.attempts > 0 ? fmt::format("waiting to be tried again, after {}", task.cause)
                           : "waiting";
}

}  // namespace

Result<int> why_command(os::Env& env, const Arguments& arguments) {
  BERTH_ASSIGN(run::Site site, run::open_site(env));
  const Target target = parse_target(arguments.target);
  BERTH_ASSIGN(const auto record, site.store->find_run(target.run));
  if (target.task.empty())
    return fail(ErrorKind::usage, "wanted RUN/TASK, such as {}/1, found '{}'", record.name,
                arguments.target);
  BERTH_ASSIGN(const auto task, find_task(site, record, target.task));
  BERTH_ASSIGN(const auto attempts, site.store->attempts(record.id, task.number));
  BERTH_ASSIGN(const auto program, experiment::from_json_text(record.spec_json));
  std::string why = summary(task);
  if (task.state == store::TaskState::waiting || task.state == store::TaskState::running) {
    if (task.state == store::TaskState::waiting || state_now(env, record) != "running") {
      BERTH_ASSIGN(const std::string reason, why_waiting(env, site, record, program));
      why += ": " + reason;
    }
  }
  if (arguments.json) {
    print(why_json(record, task, attempts, why));
    return 0;
  }
  print(fmt::format("{}/{}: {}\n", record.name, task.label, why));
  for (const auto& [name, value] : task.params) print(fmt::format("  {} = {}\n", name, value));
  for (const auto& attempt : attempts) print(attempt_text(attempt));
  return 0;
}

}  // namespace berth::cli
