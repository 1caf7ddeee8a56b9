// What berth machine and berth top show, gathered.
#pragma once

#include <string>

#include "berth/cli/json_output.h"

namespace berth::cli {

/// Asks the drivers about the devices too, which may take seconds. `probe`: a process is placed in
/// a control group, to see whether limits hold. `disk_directory`: its volume counts; "" is the
/// state directory.
Result<MachineReport> machine_report(os::Env& env, bool probe = false,
                                     const std::string& disk_directory = {});
/// All but the devices anew.
Status refresh(os::Env& env, MachineReport& report);

/// Whether limits hold here, by reading alone; nothing is changed.
LimitsReport expect_limits(os::Env& env);
/// A line of it.
std::string limits_text(const LimitsReport& limits);

/// Who holds what and who waits; `nobody` where there is none.
std::string holders_text(const MachineReport& report, Wall now, std::string_view nobody);

}  // namespace berth::cli
