// A seeded generator whose numbers are the same on every machine and compiler, unlike those of
// <random>'s distributions. xoshiro256** (Blackman and Vigna, 2018), seeded through splitmix64.
#pragma once

#include <array>
#include <cstdint>

namespace berth {

/// One step of splitmix64 from `state`; also a good mixer of small integers.
std::uint64_t mix(std::uint64_t state);

class Rng {
 public:
  explicit Rng(std::uint64_t seed);

  std::uint64_t next();
  /// Uniform in [0, 1), 53 random bits.
  double uniform();
  /// Uniform in [0, bound), without bias. bound > 0.
  std::uint64_t below(std::uint64_t bound);

 private:
  std::array<std::uint64_t, 4> state_;
};

}  // namespace berth
