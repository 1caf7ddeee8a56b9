#include "berth/placement/scores.h"

#include <algorithm>

#include "berth/placement/ring.h"

namespace berth::placement {
namespace {

Value value_with(const Scores& scores, DeviceSet set, Objective objective,
                 std::int32_t (*ring)(const Scores&, DeviceSet)) {
  const std::int64_t sum = scores.sum(set);
  switch (objective) {
    case Objective::sum: break;
    case Objective::min: return {scores.weakest(set), sum};
    case Objective::ring: return {ring(scores, set), sum};
  }
  return {sum, sum};
}

}  // namespace

std::string text(DeviceSet set) {
  std::string list = "{";
  for_each(set,
           [&](int device) { list += fmt::format("{}{}", list.size() > 1 ? "," : "", device); });
  return list + "}";
}

Scores::Scores(int devices)
    : devices_(devices),
      row_major_(static_cast<std::size_t>(devices * devices)),
      nodes_(static_cast<std::size_t>(devices)) {}

Result<Scores> Scores::make(std::span<const std::int32_t> row_major, int devices) {
  if (devices < 0 || devices > kMostDevices)
    return fail(ErrorKind::invalid, "{} devices, at most {} can be placed", devices, kMostDevices);
  Scores scores(devices);
  if (row_major.size() != scores.row_major_.size())
    return fail(ErrorKind::invalid, "{} scores, {} devices have {}", row_major.size(), devices,
                scores.row_major_.size());
  for (int a = 0; a < devices; ++a) {
    for (int b = a + 1; b < devices; ++b) {
      const std::int32_t there = row_major[scores.place(a, b)];
      const std::int32_t back = row_major[scores.place(b, a)];
      if (there != back)
        return fail(ErrorKind::invalid, "GPU{}-GPU{}: {} from one side, {} from the other", a, b,
                    there, back);
      if (there < 0 || there > kMostScore)
        return fail(ErrorKind::invalid, "GPU{}-GPU{}: score {}, expected 0 to {}", a, b, there,
                    kMostScore);
      scores.row_major_[scores.place(a, b)] = scores.row_major_[scores.place(b, a)] = there;
    }
  }
  return scores;
}

void Scores::set_nodes(std::span<const int> nodes) {
  for (std::size_t a = 0; a < nodes_.size(); ++a)
    for (std::size_t b = 0; b < nodes_.size(); ++b)
      if (a != b && nodes[a] >= 0 && nodes[a] == nodes[b]) nodes_[a] |= one(static_cast<int>(b));
}

int Scores::local_pairs(DeviceSet set) const {
  int twice = 0;
  for_each(set, [&](int device) { twice += size(set & node_of(device)); });
  return twice / 2;
}

Scores Scores::of(DeviceSet set) const {
  Scores part(size(set));
  std::vector<int> nodes;  // a node is named by its lowest device
  for_each(set, [&](int device) { nodes.push_back(lowest_index(node_of(device) | one(device))); });
  part.set_nodes(nodes);
  auto next = part.row_major_.begin();
  for_each(set, [&](int a) { for_each(set, [&](int b) { *next++ = (*this)(a, b); }); });
  return part;
}

std::int64_t Scores::links(int device, DeviceSet set) const {
  std::int64_t sum = 0;
  for_each(set, [&](int other) { sum += (*this)(device, other); });
  return sum;
}

std::int64_t Scores::sum(DeviceSet set) const {
  std::int64_t twice = 0;
  for_each(set, [&](int device) { twice += links(device, set); });
  return twice / 2;
}

std::int64_t Scores::weakest(DeviceSet set) const {
  if (size(set) < 2) return 0;
  std::int64_t least = kMostScore;
  for_each(set, [&](int a) {
    for_each(set & ~first(a + 1),
             [&](int b) { least = std::min<std::int64_t>(least, (*this)(a, b)); });
  });
  return least;
}

Value value_of(const Scores& scores, DeviceSet set, Objective objective) {
  return value_with(scores, set, objective, ring_of);
}

Value quick_value_of(const Scores& scores, DeviceSet set, Objective objective) {
  return value_with(scores, set, objective, quick_ring_of);
}

}  // namespace berth::placement
