// What a report says of a plan for a fleet of inference servers.
#pragma once

#include "berth/cli/report_page.h"
#include "berth/fleet/fleet.h"

namespace berth::cli {

ReportPage report_of_plan(const std::string& title, const fleet::System& system,
                          const fleet::Plan& plan);

}  // namespace berth::cli
