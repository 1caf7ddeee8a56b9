#include "berth/placement/best_effort.h"

#include <algorithm>

namespace berth::placement {

BestEffort::BestEffort(int devices) : known_(std::size_t{1} << devices) {}

BestEffort::Choice BestEffort::choose(const Tables& tables, const Question& question) {
  const int devices = size(question.available);
  const int full_sets = devices / question.count;
  tables_ = &tables;
  std::array<Key, kExactDevices> links{};
  const auto sums=tables.keys(Objective::sum);
  const DeviceSet all = sums.size()-1;
  std::size_t n = 0;
  for_each(all, [&](int device) { links[(size_t)device] = sums[all] - sums[all ^ one(device)]; strongest_first_[n++] = one(device); });
  std::sort(strongest_first_.begin(), strongest_first_.begin() + n, [&](DeviceSet x, DeviceSet y) { return links[lowest_index(x)] > links[lowest_index(y)]; });
  keys_ = tables.keys(question.objective);
  count_ = question.count;
  remainder_ = devices % question.count;
  if (++asked_ == 0) {  // after 2^32 questions the stamps begin anew
    std::ranges::fill(known_, Known{});
    asked_ = 1;
  }
  // With two sets at most, rest() is a look-up, and nothing is quicker.
  const bool searched = devices > 2 * count_;
  if (searched) {
    best_set_ = tables.best_within(question.objective, count_);
    best_remainder_ = tables.best_within(question.objective, remainder_);
  }

  Choice best;
  Key best_key = -1;
  const auto is_better = [&](Key partition, Key own, DeviceSet set) {
    if (partition != best.partition) return partition > best.partition;
    return own != best_key ? own > best_key : before(set, best.devices);
  };
  const auto consider = [&](DeviceSet set) {
    const DeviceSet others = question.available ^ set;
    const Key own = keys_[set];
    if (searched) {
      // Where no device is required, a partition need be found by its best set only.
      const Key other = best_set_[others];
      const Key best_other = question.required == 0 ? std::min(own, other) : other;
      const Key remainder = remainder_ == 0 ? 0 : best_remainder_[others];
      const Key most = own + (full_sets - 1) * best_other + remainder;
      if (!is_better(most, own, set)) return true;
    }
    const bool tie_would_win = is_better(best.partition, own, set);
    const Key needed = best.partition - own + (tie_would_win ? 0 : 1);
    const Key partition = own + rest(others, devices - count_, needed);
    if (is_better(partition, own, set)) best = {set, partition}, best_key = own;
    return true;
  };
  const auto each_candidate = [&](const auto& visit) {
    const DeviceSet pool = question.available & ~question.required;
    each_subset(pool, size(pool), count_ - size(question.required), question.required, visit);
  };
  if (searched) {
    DeviceSet promising = 0;
    each_candidate([&](DeviceSet set) {
      if (promising == 0 || keys_[set] > keys_[promising]) promising = set;
      return true;
    });
    consider(promising);
  }
  each_candidate(consider);
  return best;
}

Key BestEffort::rest(DeviceSet devices, int size, Key needed) {
  if (size <= count_) return keys_[devices];
  devices = tables_->representative(devices);
  Known& known = known_[devices];
  if (known.asked_in == asked_) {
    if (known.exact || known.most < needed) return known.most;
    needed = 0;  // asked for again with less to exceed: once and for all
  }
  if (size <= 2 * count_) {
    known = {rest_of_two(devices, size), asked_, true};
    return known.most;
  }
  const Key most = bound(devices, size);
  Key best = needed - 1;
  const DeviceSet anchor = strongest_of(devices);
  const auto divide = [&](int part) {
    return each_subset(devices ^ anchor, size - 1, part - 1, anchor, [&](DeviceSet set) {
      const DeviceSet others = devices ^ set;
      const Key own = keys_[set];
      if (own + bound(others, size - part) > best)
        best = std::max(best, own + rest(others, size - part, best + 1 - own));
      return best < most;
    });
  };
  const bool remainder_left = size % count_ != 0;
  if (divide(count_) && remainder_left) divide(remainder_);
  known = {best, asked_, best >= needed};
  return best;
}

/// Most of the work is here, so that it is the plainest: of every set and what it leaves.
Key BestEffort::rest_of_two(DeviceSet devices, int size) const {
  Key best = -1;
  const auto consider = [&](DeviceSet set) {
    best = std::max(best, keys_[set] + keys_[devices ^ set]);
    return true;
  };
  const int smaller = size - count_;
  const DeviceSet anchor = std::bit_floor(devices);
  if (smaller == count_)
    each_subset(devices ^ anchor, size - 1, count_ - 1, anchor, consider);
  else
    each_subset(devices, size, smaller, 0, consider);
  return best;
}

}  // namespace berth::placement
