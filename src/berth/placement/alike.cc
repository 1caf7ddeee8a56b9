#include "berth/placement/alike.h"

#include <array>

namespace berth::placement {
namespace {

bool are_alike(const Scores& scores, int a, int b) {
  bool same = true;
  for_each(scores.all() & ~one(a) & ~one(b),
           [&](int other) { same = same && scores(a, other) == scores(b, other); });
  return same;
}

}  // namespace

std::vector<DeviceSet> alike(const Scores& scores) {
  std::vector<DeviceSet> classes;
  for (DeviceSet left = scores.all(); left != 0;) {
    const int device = lowest_index(left);
    DeviceSet found = one(device);
    for_each(left ^ found, [&](int other) {
      if (are_alike(scores, device, other)) found |= one(other);
    });
    if (size(found) > 1) classes.push_back(found);
    left &= ~found;
  }
  return classes;
}

std::vector<std::uint16_t> representatives(const Scores& scores) {
  const std::vector<DeviceSet> classes = alike(scores);
  if (classes.empty()) return {};
  std::vector<std::uint16_t> chosen(std::size_t{1} << scores.devices());
  for (std::size_t set = 0; set < chosen.size(); ++set)
    chosen[set] = static_cast<std::uint16_t>(set);
  for (const DeviceSet members : classes) {
    std::array<DeviceSet, kExactDevices + 1> lowest_of{};  // so many of the class
    int count = 0;
    for_each(members, [&](int device) {
      const auto next = static_cast<std::size_t>(++count);
      lowest_of[next] = lowest_of[next - 1] | one(device);
    });
    for (std::size_t set = 0; set < chosen.size(); ++set) {
      const DeviceSet others = chosen[set] & ~members;
      const auto taken = static_cast<std::size_t>(size(set & members));
      chosen[set] = static_cast<std::uint16_t>(others | lowest_of[taken]);
    }
  }
  return chosen;
}

}  // namespace berth::placement
