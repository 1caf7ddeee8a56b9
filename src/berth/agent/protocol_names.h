// The words that stand for enumerators in the protocol's lines, in their order.
#pragma once

#include <array>
#include <string_view>

namespace berth::agent {

inline constexpr std::array<std::string_view, 11> kCauses{
    "ok",           "exit_code",      "signal",      "out_of_memory", "time_limit", "stopped",
    "cannot_start", "short_of_means", "worker_lost", "gpu_memory",    "given_back"};
inline constexpr std::array<std::string_view, 3> kStreams{"", "out", "err"};

}  // namespace berth::agent
