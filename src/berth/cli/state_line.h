// The line that says how a run is.
#pragma once

#include <string_view>

#include "berth/store/store.h"

namespace berth::cli {

/// Prints the line "digits-3  failed: 38 done, 1 failed".
void print_state_line(const store::RunRecord& run, std::string_view state);

}  // namespace berth::cli
