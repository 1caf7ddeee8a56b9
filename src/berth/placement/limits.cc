#include <algorithm>
#include <array>
#include <functional>

#include "berth/placement/anytime.h"

namespace berth::placement {
namespace {

/// How many links of every device a set of `count` needs to be as strong as its value says.
int links_needed(int count, Objective objective) {
  return objective == Objective::ring ? std::min(2, count - 1) : count - 1;
}

/// Numbers kept in an array on the stack, the greatest first.
class Sorted {
 public:
  void add(std::int64_t number) { numbers_[used_++] = number; }
  std::span<const std::int64_t> greatest(int count) {
    const auto end = numbers_.begin() + static_cast<std::ptrdiff_t>(used_);
    std::partial_sort(numbers_.begin(), numbers_.begin() + count, end, std::greater{});
    return std::span(numbers_).first(static_cast<std::size_t>(count));
  }

 private:
  std::array<std::int64_t, kMostDevices> numbers_;
  std::size_t used_ = 0;
};

}  // namespace

Limits::Limits(const Scores& scores, DeviceSet available, int count, Objective objective)
    : scores_(scores), count_(count), objective_(objective) {
  const auto needed = links_needed(count, objective);
  for_each(available, [&](int device) {
    Sorted links;
    const DeviceSet others = available & ~one(device);
    for_each(others, [&](int other) { links.add(scores(device, other)); });
    const auto i = static_cast<std::size_t>(device);
    std::size_t taken = 0;
    for (const std::int64_t link : links.greatest(size(others))) {
      best_links_[i][taken + 1] = best_links_[i][taken] + link;
      if (++taken == static_cast<std::size_t>(needed)) weakest_[i] = link;
    }
  });
}

Value Limits::of(DeviceSet taken, DeviceSet pool) const {
  const int open = count_ - size(taken);
  const std::int64_t sum = sum_limit(taken, pool, open);
  if (objective_ == Objective::sum) return {sum, sum};
  return {count_ < 2 ? 0 : weakest_limit(taken, pool, open), sum};
}

/// A device yet to come brings its links to those taken, and half of its best ones to the others.
std::int64_t Limits::sum_limit(DeviceSet taken, DeviceSet pool, int open) const {
  if (open == 0) return scores_.sum(taken);
  Sorted doubled;
  for_each(pool, [&](int device) {
    doubled.add(2 * scores_.links(device, taken) + best_links(device, open - 1));
  });
  std::int64_t twice = 2 * scores_.sum(taken);
  for (const std::int64_t gain : doubled.greatest(open)) twice += gain;
  return twice / 2;
}

/// Under `min` the links to those taken count as well: every one of them will be in the set.
std::int64_t Limits::weakest_limit(DeviceSet taken, DeviceSet pool, int open) const {
  const bool every_pair = objective_ == Objective::min;
  std::int64_t least = kMostScore;
  for_each(taken, [&](int device) { least = std::min(least, weakest(device)); });
  if (every_pair && size(taken) > 1) least = std::min(least, scores_.weakest(taken));
  if (open == 0) return least;
  Sorted joining;
  for_each(pool, [&](int device) {
    std::int64_t mine = weakest(device);
    if (every_pair)
      for_each(taken,
               [&](int other) { mine = std::min<std::int64_t>(mine, scores_(device, other)); });
    joining.add(mine);
  });
  return std::min(least, joining.greatest(open).back());
}

}  // namespace berth::placement
