// The explanation of a run as text.
#pragma once

#include <string>

#include "berth/engine/run_explanation.h"

namespace berth::cli {

/// Several lines; the first one is the line of berth wait.
std::string explanation_text(const engine::RunExplanation& run);

}  // namespace berth::cli
