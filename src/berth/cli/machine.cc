// berth machine: what this process may use, what is free, and who holds the rest.
#include <algorithm>

#include "berth/base/units.h"
#include "berth/cli/commands.h"
#include "berth/cli/json_output.h"
#include "berth/cli/table.h"
#include "berth/machine/groups.h"

namespace berth::cli {
namespace {

std::string report_text(const MachineReport& report, Wall now) {
  const machine::Capacity& capacity = report.capacity;
  Table table({"resource", "total", "free", "held", "from"});
  capacity.total.each([&](std::string_view name, std::int64_t total) {
    std::string from;
    if (name == "cpu")
      from = fmt::format("{} (cores {})", capacity.cpu_from, ranges_text(capacity.cores));
    if (name == "mem") from = capacity.mem_from;
    if (name == "disk")
      from = fmt::format("volume of {}, {} kept free", capacity.disk_path,
                         format_bytes(capacity.disk_floor));
    table.add({std::string(name), format_amount(name, total),
               format_amount(name, report.free.get(name)),
               format_amount(name, report.held.get(name)), from.empty() ? "machine file" : from});
  });
  std::string text = table.text();
  if (report.overdrawn) text += "more is held than there is now: a limit shrank\n";
  if (capacity.inodes_short) text += "the volume has hardly an inode left: disk counts as 0\n";
  text += report.enforced.empty() ? "limits: advisory, no control group can be made here\n"
                                  : fmt::format("limits: {}\n", report.enforced);
  for (const auto& note : capacity.notes) text += fmt::format("note: {}\n", note);
  Table holders({"who", "what", "since", "pid", ""});
  for (const auto& entry : report.entries)
    holders.add({entry.label, to_string(entry.block.resources), format_duration(now - entry.since),
                 fmt::format("{}", entry.holder.pid), entry.waiting ? "waits" : ""});
  return holders.empty() ? text : text + "\n" + holders.text();
}

}  // namespace

Result<int> machine_command(os::Env& env, const Arguments& arguments) {
  BERTH_ASSIGN(const std::string state, run::state_directory(env));
  auto options = run::capacity_options(env, state);
  if (!arguments.disk_directory.empty()) options.disk_directory = arguments.disk_directory;
  MachineReport report;
  BERTH_ASSIGN(report.capacity, machine::discover(env, options));
  BERTH_ASSIGN(auto ledger, machine::Ledger::open(env, machine::Ledger::default_directory(env)));
  BERTH_ASSIGN(report.entries, ledger.entries());
  machine::Machine machine(run::block_of(report.capacity));
  std::vector<machine::Reservation> held;
  for (const auto& entry : report.entries)
    if (!entry.waiting)
      if (auto taken = machine.occupy(entry.block, entry.label)) held.push_back(*std::move(taken));
  report.held = machine.held();
  report.free = machine.free();
  report.overdrawn = machine.overdrawn();
  report.enforced = machine::Groups(env).enforced();
  print(arguments.json ? machine_json(report) : report_text(report, env.wall()));
  return 0;
}

}  // namespace berth::cli
