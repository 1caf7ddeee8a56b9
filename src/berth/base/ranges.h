// Numbers as ranges. Pure.
#pragma once

#include <span>
#include <string>

namespace berth {

/// Ascending numbers with their ranges, such as "0-3,8".
std::string ranges_text(std::span<const int> numbers);

}  // namespace berth
