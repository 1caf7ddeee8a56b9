// For tests: the amounts that blocks and requests are made of.
#pragma once

#include <cstdint>

namespace berth::machine {

inline constexpr std::int64_t kGi = 1 << 30;

}  // namespace berth::machine
