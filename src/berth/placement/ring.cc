#include "berth/placement/ring.h"

#include <algorithm>
#include <array>

namespace berth::placement {
namespace {

/// One byte a device, so that a step of the dynamic programme is one vector instruction.
using Ranks = std::array<std::uint8_t, kExactDevices>;

std::vector<std::int32_t> distinct_scores(const Scores& scores) {
  std::vector<std::int32_t> distinct;
  for (int a = 0; a < scores.devices(); ++a)
    for (int b = a + 1; b < scores.devices(); ++b) distinct.push_back(scores(a, b));
  std::ranges::sort(distinct);
  const auto doubles = std::ranges::unique(distinct);
  distinct.erase(doubles.begin(), doubles.end());
  return distinct;
}

/// The strongest way from any end of the paths to the device.
std::uint8_t strongest(const Ranks& paths, const Ranks& links) {
  std::uint8_t best = 0;
  for (std::size_t i = 0; i < kExactDevices; ++i) {
    const std::uint8_t way = paths[i] < links[i] ? paths[i] : links[i];
    best = way > best ? way : best;
  }
  return best;
}

/// Looks for one ring in a graph of up to 64 devices.
class Tour {
 public:
  explicit Tour(const Scores& scores, std::int32_t least) : devices_(scores.devices()) {
    for (int a = 0; a < devices_; ++a)
      for (int b = 0; b < devices_; ++b)
        if (a != b && scores(a, b) >= least) near_[at(a)] |= one(b);
  }

  bool found() {
    for (int start = 0; start < kStarts; ++start)
      if (found_from(start)) return true;
    return false;
  }

 private:
  static constexpr int kStarts = 4;  // the way that one start misses, another often finds

  bool found_from(int start) {
    path_[0] = start;
    length_ = 1;
    on_path_ = ends_tried_ = one(start);
    const int most_steps = devices_ * devices_;
    for (int step = 0; step < most_steps; ++step) {
      if (length_ == devices_ && (near_[at(end())] & one(path_[0])) != 0) return true;
      if (!extend() && !rotate()) return false;
    }
    return false;
  }

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  int end() const { return path_[at(length_ - 1)]; }

  /// To the free neighbour that has the fewest ways on, which is the hardest to reach later.
  bool extend() {
    int next = -1, fewest = kMostDevices + 1;
    for_each(near_[at(end())] & ~on_path_, [&](int device) {
      const int ways = size(near_[at(device)] & ~on_path_);
      if (ways < fewest) fewest = ways, next = device;
    });
    if (next < 0) return false;
    path_[at(length_++)] = next;
    on_path_ |= one(next);
    ends_tried_ = one(next);
    return true;
  }

  /// Turns the tail around at a neighbour of the end, which gives the path another end.
  bool rotate() {
    for (int i = 0; i + 2 < length_; ++i) {
      const int new_end = path_[at(i + 1)];
      if ((near_[at(end())] & one(path_[at(i)])) == 0 || (ends_tried_ & one(new_end)) != 0)
        continue;
      std::reverse(path_.begin() + i + 1, path_.begin() + length_);
      ends_tried_ |= one(new_end);
      return true;
    }
    return false;
  }

  int devices_, length_ = 0;
  std::array<DeviceSet, kMostDevices> near_{};
  std::array<int, kMostDevices> path_{};
  DeviceSet on_path_ = 0, ends_tried_ = 0;
};

std::int32_t ring_found(const Scores& scores) {
  const std::vector<std::int32_t> thresholds = distinct_scores(scores);
  // At the lowest threshold all are joined, so that a tour is always found there.
  std::size_t low = 0, high = thresholds.size();
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (Tour(scores, thresholds[middle]).found() ? low : high) = middle;
  }
  return thresholds[low];
}

std::int32_t ring_up_to(int most_exact, const Scores& scores, DeviceSet set) {
  if (size(set) < 2) return 0;
  const Scores part = scores.of(set);
  return part.devices() <= most_exact ? rings_of_all_subsets(part).back() : ring_found(part);
}

}  // namespace

std::vector<std::int32_t> rings_of_all_subsets(const Scores& scores) {
  const std::vector<std::int32_t> distinct = distinct_scores(scores);
  std::array<Ranks, kExactDevices> links{};
  for (int a = 0; a < scores.devices(); ++a)
    for (int b = 0; b < scores.devices(); ++b)
      if (a != b)
        links[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] = static_cast<std::uint8_t>(
            std::ranges::lower_bound(distinct, scores(a, b)) - distinct.begin());

  const std::size_t sets = std::size_t{1} << scores.devices();
  std::vector<std::int32_t> rings(sets, 0);
  std::vector<Ranks> paths(sets, Ranks{});  // by set and end; from the set's lowest device
  for (std::size_t set = 1; set < sets; ++set) {
    const auto start = static_cast<std::size_t>(lowest_index(set));
    if ((set & (set - 1)) == 0) {
      paths[set][start] = UINT8_MAX;
      continue;
    }
    for_each(set & (set - 1), [&](int device) {
      const auto end = static_cast<std::size_t>(device);
      paths[set][end] = strongest(paths[set ^ one(device)], links[end]);
    });
    rings[set] = distinct[strongest(paths[set], links[start])];
  }
  return rings;
}

std::int32_t ring_of(const Scores& scores, DeviceSet set) {
  return ring_up_to(kExactDevices, scores, set);
}

std::int32_t quick_ring_of(const Scores& scores, DeviceSet set) {
  return ring_up_to(kQuickRingDevices, scores, set);
}

}  // namespace berth::placement
