// The screen of berth top as text: what stands in each row, and how a terminal is told. Pure.
#pragma once

#include <string>
#include <vector>

#include "berth/cli/top/top_model.h"

namespace berth::cli {

/// One row of the screen, in control sequences of colour and text that render::one_line() has made,
/// at most as wide as the screen. `is_plain`: without colours.
std::vector<std::string> page_of(const TopData& data, const TopState& state, ScreenSize size,
                                 bool is_plain);

/// What turns the screen from the rows `before` (none: it is empty, or unknown) into `after`.
std::string drawing(const std::vector<std::string>& before, const std::vector<std::string>& after);

}  // namespace berth::cli
