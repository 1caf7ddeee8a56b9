// What berth machine and berth top show, gathered.
#pragma once

#include <string>

#include "berth/cli/arguments.h"
#include "berth/cli/json_output.h"

namespace berth::cli {

/// Asks the drivers about the devices too, which may take seconds.
Result<MachineReport> machine_report(os::Env& env, const Arguments& arguments);
/// All but the devices anew.
Status refresh(os::Env& env, const Arguments& arguments, MachineReport& report);

/// Who holds what and who waits; `nobody` where there is none.
std::string holders_text(const MachineReport& report, Wall now, std::string_view nobody);

}  // namespace berth::cli
