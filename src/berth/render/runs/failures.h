// Failed tasks as text.
#pragma once

#include <string>

#include "berth/engine/queries/failures.h"

namespace berth::render {

/// Several lines; the last one names the commands that say more.
std::string failure_text(const engine::Failure& failure);
/// The lines of it that say what ran and what it printed.
std::string report_text(const run::TaskReport& report);

}  // namespace berth::render
