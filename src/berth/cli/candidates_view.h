// The table of berth plan --candidates.
#pragma once

#include <string>

#include "berth/fleet/fleet.h"

namespace berth::cli {

/// One row for each server on each accelerator, with what limits it or why it cannot be used.
std::string candidates_text(const fleet::System& system, const fleet::Candidates& all);

}  // namespace berth::cli
