#include "berth/experiment/proposers/sobol.h"

#include <array>

#include "berth/base/rng.h"

namespace berth::experiment {
namespace {

constexpr int kBits = 32;

/// A primitive polynomial over GF(2) by its degree and its inner coefficients, and the first odd
/// numbers of its recurrence.
struct Polynomial {
  int degree;
  unsigned inner;
  std::array<std::uint32_t, 7> first;
};

// Dimension 0 is van der Corput's sequence and needs none.
constexpr std::array<Polynomial, kSobolDimensions - 1> kPolynomials{{
    {1, 0, {1}},
    {2, 1, {1, 3}},
    {3, 1, {1, 3, 1}},
    {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}},
    {5, 2, {1, 1, 5, 5, 17}},
    {5, 4, {1, 1, 5, 5, 5}},
    {5, 7, {1, 1, 7, 11, 19}},
    {5, 11, {1, 1, 5, 1, 1}},
    {5, 13, {1, 1, 1, 3, 11}},
    {5, 14, {1, 3, 5, 5, 31}},
    {6, 1, {1, 3, 3, 9, 7, 49}},
    {6, 13, {1, 1, 1, 15, 21, 21}},
    {6, 16, {1, 3, 1, 13, 27, 49}},
    {6, 19, {1, 1, 1, 15, 7, 5}},
    {6, 22, {1, 3, 1, 15, 13, 25}},
    {6, 25, {1, 1, 5, 5, 19, 61}},
    {7, 1, {1, 3, 7, 11, 23, 15, 103}},
    {7, 4, {1, 3, 7, 13, 13, 15, 69}},
    {7, 7, {1, 1, 3, 13, 7, 35, 63}},
    {7, 8, {1, 3, 5, 9, 1, 25, 53}},
    {7, 14, {1, 3, 1, 13, 9, 35, 107}},
    {7, 19, {1, 3, 1, 5, 27, 61, 31}},
    {7, 21, {1, 1, 5, 11, 19, 41, 61}},
    {7, 28, {1, 3, 5, 3, 3, 13, 69}},
    {7, 31, {1, 1, 7, 13, 1, 19, 1}},
    {7, 32, {1, 3, 7, 5, 13, 19, 59}},
    {7, 37, {1, 1, 3, 9, 25, 29, 41}},
    {7, 41, {1, 3, 5, 13, 23, 1, 55}},
    {7, 42, {1, 3, 7, 3, 13, 59, 17}},
}};

using Directions = std::array<std::uint32_t, kBits>;

constexpr Directions directions_of(std::size_t dimension) {
  Directions directions{};
  const auto unit = [](int bit) { return kBits - 1 - bit; };
  if (dimension == 0) {
    for (int bit = 0; bit < kBits; ++bit)
      directions[static_cast<std::size_t>(bit)] = 1U << unit(bit);
    return directions;
  }
  const Polynomial& polynomial = kPolynomials[dimension - 1];
  const int degree = polynomial.degree;
  for (int bit = 0; bit < kBits; ++bit) {
    const auto at = [&](int back) -> std::uint32_t {
      return directions[static_cast<std::size_t>(bit - back)];
    };
    auto& direction = directions[static_cast<std::size_t>(bit)];
    if (bit < degree) {
      direction = polynomial.first[static_cast<std::size_t>(bit)] << unit(bit);
      continue;
    }
    direction = at(degree) ^ (at(degree) >> degree);
    for (int k = 1; k < degree; ++k)
      if ((polynomial.inner >> (degree - 1 - k)) & 1U) direction ^= at(k);
  }
  return directions;
}

constexpr auto kDirectionNumbers = [] {
  std::array<Directions, kSobolDimensions> all{};
  for (std::size_t dimension = 0; dimension < all.size(); ++dimension)
    all[dimension] = directions_of(dimension);
  return all;
}();

}  // namespace

double sobol(std::uint64_t index, std::size_t dimension, std::uint64_t seed) {
  Rng rng(mix(seed ^ mix(dimension + 1)));
  if (dimension >= kSobolDimensions) return Rng(rng.next() ^ mix(index)).uniform();
  auto bits = static_cast<std::uint32_t>(rng.next() >> kBits);
  for (std::size_t bit = 0; bit < kBits && index >> bit != 0; ++bit)
    if ((index >> bit) & 1U) bits ^= kDirectionNumbers[dimension][bit];
  return bits * 0x1p-32;
}

}  // namespace berth::experiment
