// Numbers as ranges. Pure.
#pragma once

#include <string>
#include <vector>

namespace berth {

/// Ascending numbers with their ranges, such as "0-3,8".
std::string ranges_text(const std::vector<int>& numbers);

}  // namespace berth
