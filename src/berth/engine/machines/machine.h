// The resources of this machine: what it has, what is free, who uses the rest, and whether limits
// are enforced.
//
// Threads: one. Failure: what the drivers, the ledger or the state directory report.
#pragma once

#include <string>
#include <vector>

#include "berth/engine/context.h"
#include "berth/machine/capacity.h"
#include "berth/machine/devices/device_health.h"
#include "berth/machine/ledger/ledger.h"
#include "berth/run/drive/expected_starts.h"

namespace berth::engine {

/// Whether limits of tasks are enforced on this machine.
struct LimitsReport {
  std::string enforced;  ///< Such as "memory, pids, cpu by cgroup v2"; "": they are advisory.
  std::string because;   ///< Why they are advisory, or where they are enforced.
  bool probed = false;   ///< Tested with a process in a control group.
};

struct MachineReport {
  std::string disk_directory;  ///< The directory whose volume is measured; "": the state directory.
  machine::Capacity capacity;
  Resources held, free;
  bool overdrawn = false;
  std::vector<machine::LedgerEntry> entries;
  LimitsReport limits;
  machine::Devices devices;
  std::vector<machine::DeviceShare> total_devices, free_devices;  ///< The devices in service.
  /// The expected start of each waiting entry; empty before find_starts().
  std::vector<run::ExpectedStart> starts;
  Wall now{};  ///< The time of the report.
};

/// Gathers the report without starts. Asks the drivers about the devices, which may take seconds.
Result<MachineReport> machine_report(os::Env& env, bool probes_limits = false,
                                     const std::string& disk_directory = {});
/// Gathers the report again, except for devices, limits and starts.
Status refresh(os::Env& env, MachineReport& report);

/// Fills in the expected starts. Reads the runs of this user if any entry waits; what cannot be
/// read is reported as unknown.
void find_starts(os::Env& env, MachineReport& report);
void find_starts(Context& context, MachineReport& report);

/// Finds out whether limits are enforced by reading only.
LimitsReport expect_limits(os::Env& env);
/// Finds out whether limits are enforced with a process in a control group.
Result<LimitsReport> probe_limits(os::Env& env);

}  // namespace berth::engine
