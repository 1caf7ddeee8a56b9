#include "berth/placement/groups.h"

#include <array>

#include "berth/placement/subsets.h"

namespace berth::placement {
namespace {

template <int kDevices, int kCount>
consteval auto blocks() {
  std::array<DeviceSet, kDevices / kCount> made{};
  for (std::size_t i = 0; i < made.size(); ++i)
    made[i] = ((DeviceSet{1} << kCount) - 1) << (i * kCount);
  return made;
}

// The pairs joined by NVLink within a PCIe half of the board; quads are the halves.
constexpr std::array<DeviceSet, 4> kPascalPairs{0b00000101, 0b00001010, 0b01010000, 0b10100000};
constexpr std::array<DeviceSet, 4> kVoltaPairs{0b00001001, 0b00000110, 0b10010000, 0b01100000};
constexpr auto kDgx1Ones = blocks<8, 1>();
constexpr auto kDgx1Quads = blocks<8, 4>();
constexpr auto kDgx1Whole = blocks<8, 8>();
constexpr auto kDgx2Ones = blocks<16, 1>();
constexpr auto kDgx2Pairs = blocks<16, 2>();
constexpr auto kDgx2Quads = blocks<16, 4>();
constexpr auto kDgx2Halves = blocks<16, 8>();
constexpr auto kDgx2Whole = blocks<16, 16>();

constexpr std::array kSizes{1, 2, 4, 8, 16};
using Groups = std::array<std::span<const DeviceSet>, kSizes.size()>;
constexpr Groups kPascal{kDgx1Ones, kPascalPairs, kDgx1Quads, kDgx1Whole, {}};
constexpr Groups kVolta{kDgx1Ones, kVoltaPairs, kDgx1Quads, kDgx1Whole, {}};
constexpr Groups kDgx2{kDgx2Ones, kDgx2Pairs, kDgx2Quads, kDgx2Halves, kDgx2Whole};

const Groups* groups_of(PolicyKind policy) {
  switch (policy) {
    case PolicyKind::static_dgx1_pascal: return &kPascal;
    case PolicyKind::static_dgx1_volta: return &kVolta;
    case PolicyKind::static_dgx2: return &kDgx2;
    default: return nullptr;
  }
}

}  // namespace

std::span<const int> group_sizes(PolicyKind policy) {
  const Groups* all = groups_of(policy);
  if (all == nullptr) return {};
  return std::span(kSizes).first(all->back().empty() ? kSizes.size() - 1 : kSizes.size());
}

std::span<const DeviceSet> groups(PolicyKind policy, int count) {
  const Groups* all = groups_of(policy);
  for (std::size_t i = 0; all != nullptr && i < kSizes.size(); ++i)
    if (kSizes[i] == count) return (*all)[i];
  return {};
}

}  // namespace berth::placement
