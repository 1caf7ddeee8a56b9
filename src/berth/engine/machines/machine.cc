#include "berth/engine/machines/machine.h"

#include <algorithm>

#include "berth/machine/groups/groups.h"
#include "berth/os/child_process.h"

namespace berth::engine {

Result<LimitsReport> probe_limits(os::Env& env) {
  machine::Groups groups(env, {.may_move = true});
  machine::Block block;
  block.resources.set(Known::cpu, 500);
  block.resources.set(Known::mem, std::int64_t{64} << 20);
  const auto cores = env.affinity();
  if (!cores.empty()) block.cores.push_back({cores.front(), 0, 500});
  auto group = groups.acquire(block);
  LimitsReport limits;
  limits.probed = true;
  if (group) {
    os::SpawnSpec spec;
    spec.argv = {"/proc/self/exe", "--version"};
    spec.environment = env.environment();
    spec.directory = "/";
    spec.join_files = group->join_files;
    if (group->directory) spec.group = &group->directory;
    const auto ended = os::run_child(env, spec, {}, env.now() + std::chrono::seconds(30));
    groups.release(std::move(group));
    if (!ended) groups.give_up(ended.error().message);
  }
  limits.enforced = groups.enforced();
  limits.because = groups.plan().because;
  if (groups.plan().method == machine::GroupPlan::Method::v1) limits.because.clear();
  return limits;
}

LimitsReport expect_limits(os::Env& env) {
  const auto plan = machine::plan_groups(env, "", false);
  LimitsReport limits;
  limits.because = plan.because;
  if (plan.method == machine::GroupPlan::Method::none) return limits;
  if (plan.method == machine::GroupPlan::Method::v1) {
    limits.enforced = machine::Groups(env).enforced();
    limits.because.clear();
  } else {
    limits.enforced = "by cgroup v2";
  }
  return limits;
}

void find_starts(Context& context, MachineReport& report) {
  const auto host = machine::host_of(report.capacity, &report.devices);
  report.starts = run::expected_starts(context, host, report.entries);
}

void find_starts(os::Env& env, MachineReport& report) {
  if (std::ranges::none_of(report.entries, &machine::LedgerEntry::waiting)) return;
  if (auto context = open_context(env)) return find_starts(*context, report);
  report.starts.assign(static_cast<std::size_t>(
                           std::ranges::count_if(report.entries, &machine::LedgerEntry::waiting)),
                       {std::nullopt, false, "the store of runs cannot be opened"});
}

Status refresh(os::Env& env, MachineReport& report) {
  BERTH_ASSIGN(const std::string state, run::state_directory(env));
  auto options = run::capacity_options(env, state);
  if (!report.disk_directory.empty()) options.disk_directory = report.disk_directory;
  BERTH_ASSIGN(report.capacity, machine::discover(env, options));
  BERTH_ASSIGN(auto ledger, machine::Ledger::open(env, machine::Ledger::default_directory(env)));
  BERTH_ASSIGN(report.entries, ledger.entries());
  const auto host = machine::host_of(report.capacity, &report.devices);
  report.now = env.wall();
  report.capacity.total = host.total.resources;
  machine::Machine machine(host.total, host.links);
  const auto held = machine::occupy_all(machine, host, report.entries);
  report.total_devices = host.total.devices;
  report.free_devices.assign(machine.free_devices().begin(), machine.free_devices().end());
  report.held = machine.held();
  report.free = machine.free();
  report.overdrawn = machine.overdrawn();
  return {};
}

Result<MachineReport> machine_report(os::Env& env, bool probes_limits,
                                     const std::string& disk_directory) {
  MachineReport report;
  report.disk_directory = disk_directory;
  BERTH_ASSIGN(report.devices,
               machine::read_devices(env, {}, machine::Ledger::default_directory(env)));
  BERTH_ASSIGN(report.limits,
               probes_limits ? probe_limits(env) : Result<LimitsReport>(expect_limits(env)));
  BERTH_TRY(refresh(env, report));
  return report;
}

}  // namespace berth::engine
