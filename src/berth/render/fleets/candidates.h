// The table of berth plan --candidates.
#pragma once

#include <string>

#include "berth/fleet/fleet.h"
#include "berth/render/table.h"

namespace berth::render {

/// One row for each server on each accelerator, with what limits it or why it cannot be used.
std::string candidates_text(const fleet::System& system, const fleet::Candidates& all,
                            const View& view);

}  // namespace berth::render
