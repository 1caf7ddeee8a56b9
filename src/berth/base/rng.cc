#include "berth/base/rng.h"

#include <bit>

#include "berth/base/result.h"

namespace berth {

std::uint64_t mix(std::uint64_t state) {
  state += 0x9e3779b97f4a7c15U;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9U;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebU;
  return state ^ (state >> 31);
}

Rng::Rng(std::uint64_t seed) {
  for (auto& word : state_) {
    word = mix(seed);
    seed += 0x9e3779b97f4a7c15U;
  }
}

std::uint64_t Rng::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Rng::uniform() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

std::uint64_t Rng::below(std::uint64_t bound) {
  BERTH_ASSERT(bound > 0);
  const std::uint64_t limit = -bound % bound;  // 2^64 mod bound: below it, the draw is biased
  for (;;) {
    const std::uint64_t draw = next();
    if (draw >= limit) return draw % bound;
  }
}

}  // namespace berth
