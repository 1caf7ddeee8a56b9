// The report that berth machine and berth top show.
#pragma once

#include <string>

#include "berth/cli/json_output.h"

namespace berth::cli {

/// Gathers the whole report. It asks the drivers about the devices, which may take seconds.
/// `probe`: a process is placed in a control group, to see whether limits hold. `disk_directory`:
/// its volume counts; "" is the state directory.
Result<MachineReport> machine_report(os::Env& env, bool probe = false,
                                     const std::string& disk_directory = {});
/// Gathers all of the report anew but its devices and limits.
Status refresh(os::Env& env, MachineReport& report);

/// Whether limits are enforced on this machine, found by reading alone; nothing is changed.
LimitsReport expect_limits(os::Env& env);
/// The same, found by placing a process in a control group with limits.
Result<LimitsReport> probe_limits(os::Env& env);
/// The limits in a line of text.
std::string limits_text(const LimitsReport& limits);

/// Fills when those that wait are expected to start. It reads the runs of this user that hold or
/// wait, where anybody waits; what cannot be read counts as unknown.
void expect_starts(os::Env& env, MachineReport& report);
void expect_starts(run::Context& context, MachineReport& report);

/// A table of who holds what and who waits, and by what the starts are told; the text
/// `nobody` where the table would be empty.
std::string holders_text(const MachineReport& report, Wall now, std::string_view nobody);

}  // namespace berth::cli
