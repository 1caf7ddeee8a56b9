// berth machine: what this process may use, what is free, and who holds the rest.
#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/json_output.h"
#include "berth/cli/machine_report.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/machine/groups.h"
#include "berth/render/table.h"

namespace berth::cli {
namespace {

struct MachineOptions {
  bool json = false, probe = false;
  std::string disk_directory;

  void add_to(Options& options) {
    options.json(json);
    options.flag("--probe", probe, "Test whether limits are enforced, with a process in a cgroup");
    options
        .value("--disk-dir", disk_directory,
               "Measure the volume of this directory (default: the state directory)")
        .named("DIR");
    options.example("berth machine --json");
  }
};

std::string devices_text(const MachineReport& report) {
  render::Table table({"GPU", "model", "memory", "free", "slots", "free", "numa", "UUID", ""});
  for (const auto& share : report.devices.shares) {
    const auto& known = report.devices.topology.devices;
    const auto device = std::ranges::find(known, share.uuid, &topology::Device::uuid);
    const auto at =
        std::ranges::find(report.total_devices, share.uuid, &machine::DeviceShare::uuid);
    const bool well = at != report.total_devices.end();
    std::string state;
    for (const auto& [uuid, because] : report.devices.health.out_of_service)
      if (uuid == share.uuid) state = "out of service: " + because;
    for (const auto& use : report.devices.health.foreign)
      if (use.uuid == share.uuid)
        state += fmt::format("{}process {} ({}) has {}", state.empty() ? "" : ", ", use.pid,
                             use.program, format_bytes(use.memory));
    const auto free =
        well ? report.free_devices[static_cast<std::size_t>(at - report.total_devices.begin())]
             : machine::DeviceShare{};
    table.add({fmt::format("{}", share.index), device->model, format_bytes(share.memory),
               format_bytes(free.memory), fmt::format("{}", well ? at->slots : share.slots),
               fmt::format("{}", free.slots), share.node < 0 ? "?" : fmt::format("{}", share.node),
               share.uuid, state});
  }
  return table.empty() ? "" : "\n" + render::to_text(table);
}

std::string report_text(const MachineReport& report, Wall now) {
  const machine::Capacity& capacity = report.capacity;
  render::Table table({"resource", "total", "free", "used", "from"});
  capacity.total.each([&](std::string_view name, std::int64_t total) {
    std::string from;
    if (name == "cpu")
      from = fmt::format("{} (cores {})", capacity.cpu_from, render::ranges_text(capacity.cores));
    if (name == "mem") from = capacity.mem_from;
    if (name == "disk")
      from = fmt::format("volume of {}, {} kept free", capacity.disk_path,
                         format_bytes(capacity.disk_floor));
    if (name.starts_with("gpu")) from = report.devices.topology.name;
    table.add({std::string(name), format_amount(name, total),
               format_amount(name, report.free.get(name)),
               format_amount(name, report.held.get(name)), from.empty() ? "machine file" : from});
  });
  std::string text = render::to_text(table);
  if (report.overdrawn) text += "more is allocated than the machine has now: a limit shrank\n";
  if (capacity.inodes_short) text += "the volume has almost no free inodes: disk is treated as 0\n";
  text += limits_text(report.limits);
  for (const auto& note : capacity.notes) text += fmt::format("note: {}\n", note);
  text += devices_text(report);
  const std::string holders = holders_text(report, now, "");
  return holders.empty() ? text : text + "\n" + holders;
}

Result<int> show_machine(os::Env& env, const MachineOptions& options) {
  BERTH_ASSIGN(MachineReport report, machine_report(env, options.probe, options.disk_directory));
  expect_starts(env, report);
  print(options.json ? machine_json(report) : report_text(report, env.wall()));
  return 0;
}

}  // namespace

std::string limits_text(const LimitsReport& limits) {
  const bool held = !limits.enforced.empty();
  return fmt::format("limits: {}{}{}{}\n", held ? "enforced: " : "advisory",
                     held ? limits.enforced : "",
                     limits.because.empty() ? "" : (held ? ", " : ": ") + limits.because,
                     limits.probed ? " (tried)" : "; berth machine --probe tries it");
}

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
    auto child = env.spawn(spec);
    if (child) {
      std::array<os::Watch, 1> watches{os::Watch{.fd = child->exited.number()}};
      BERTH_TRY(env.wait(watches, env.now() + std::chrono::seconds(30)));
      (void)env.reap(*child);
    }
    groups.release(std::move(group));
    if (!child) groups.give_up(child.error().message);
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

std::string holders_text(const MachineReport& report, Wall now, std::string_view nobody) {
  render::Table holders({"who", "what", "on", "since", "pid", ""});
  std::string reasons;
  std::size_t waiting = 0;
  for (const auto& entry : report.entries) {
    std::string state = entry.waiting ? "waits" : "";
    if (entry.waiting && waiting < report.starts.size()) {
      const auto& start = report.starts[waiting++];
      const std::string text = to_text(start, now);
      state += ", " + text;
      reasons += fmt::format("{} {}: {}\n", entry.label, text, start.because);
    }
    std::vector<std::string> devices;
    for (const auto& share : entry.block.devices) devices.push_back(share.uuid);
    holders.add({entry.label, to_string(entry.block.resources), join(devices, ","),
                 format_duration(now - entry.since), fmt::format("{}", entry.holder.pid), state});
  }
  return holders.empty() ? std::string(nobody) : render::to_text(holders) + reasons;
}

void expect_starts(run::Context& context, MachineReport& report) {
  const auto host = machine::host_of(report.capacity, &report.devices);
  report.starts = run::expected_starts(context, host, report.entries);
}

void expect_starts(os::Env& env, MachineReport& report) {
  if (std::ranges::none_of(report.entries, &machine::LedgerEntry::waiting)) return;
  if (auto context = run::open_context(env)) return expect_starts(*context, report);
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

Result<MachineReport> machine_report(os::Env& env, bool probe, const std::string& disk_directory) {
  MachineReport report;
  report.disk_directory = disk_directory;
  BERTH_ASSIGN(report.devices,
               machine::read_devices(env, {}, machine::Ledger::default_directory(env)));
  BERTH_ASSIGN(report.limits, probe ? probe_limits(env) : Result<LimitsReport>(expect_limits(env)));
  BERTH_TRY(refresh(env, report));
  return report;
}

Command machine_command() {
  return command("machine", "Show the resources of this machine and who uses them", show_machine);
}

}  // namespace berth::cli
