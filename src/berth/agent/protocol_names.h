// The words that stand for enumerators in the protocol's lines, in their order.
#pragma once

#include <array>
#include <string_view>

namespace berth::agent {

inline constexpr std::array<std::string_view, 3> kStreams{"", "out", "err"};

}  // namespace berth::agent
