// Points that fill a space evenly, however many of them are taken: the sequence of Sobol with the
// direction numbers of Joe and Kuo (2008), shifted bit by bit by a seed. Pure.
#pragma once

#include <cstdint>

namespace berth::experiment {

inline constexpr std::size_t kSobolDimensions = 32;

/// Coordinate `dimension` of point `index`, in [0, 1). Dimensions beyond the table are random.
double sobol(std::uint64_t index, std::size_t dimension, std::uint64_t seed);

}  // namespace berth::experiment
