// What a report says of a plan for a fleet of inference servers.
#pragma once

#include "berth/fleet/fleet.h"
#include "berth/render/document.h"

namespace berth::render {

Document report_of_plan(const std::string& title, const fleet::System& system,
                        const fleet::Plan& plan);

}  // namespace berth::render
