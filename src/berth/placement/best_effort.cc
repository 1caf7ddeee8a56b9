#include "berth/placement/best_effort.h"

#include <algorithm>

namespace berth::placement {

BestEffort::BestEffort(const Tables& tables)
    : tables_(tables), known_(tables.keys(Objective::sum).size()) {
  const std::span<const Key> sums = tables.keys(Objective::sum);
  const DeviceSet all = sums.size() - 1;
  for_each(all, [&](int device) { strongest_first_.push_back(one(device)); });
  std::ranges::stable_sort(strongest_first_, {},
                           [&](DeviceSet device) { return sums[all ^ device]; });
}

BestEffort::Choice BestEffort::choose(const Question& question) {
  ask(question);
  if (searched_) {
    DeviceSet promising = 0;
    each_candidate([&](DeviceSet set) {
      if (promising == 0 || keys_[set] > keys_[promising]) promising = set;
    });
    try_set(promising);
    if (question.required == 0) try_best_division();
  }
  each_candidate([&](DeviceSet set) { try_set(set); });
  return best_;
}

void BestEffort::ask(const Question& question) {
  const bool is_alike =
      question.count == question_.count && question.objective == question_.objective;
  if (!is_alike && ++asked_ == 0) {  // after 2^32 changes the stamps begin anew
    std::ranges::fill(known_, Known{});
    asked_ = 1;
  }
  question_ = question;
  count_ = question.count;
  remainder_ = size(question.available) % count_;
  greatest_known_ = false;
  best_ = {};
  keys_ = tables_.keys(question.objective);
  searched_ = size(question.available) > 2 * count_;
  if (!searched_) return;
  best_set_ = tables_.best_within(question.objective, count_);
  best_remainder_ = tables_.best_within(question.objective, remainder_);
}

template <class Visit>
void BestEffort::each_candidate(const Visit& visit) const {
  const DeviceSet pool = question_.available & ~question_.required;
  each_subset(pool, size(pool), count_ - size(question_.required), question_.required,
              [&](DeviceSet set) {
                visit(set);
                return true;
              });
}

bool BestEffort::is_better(Key partition, DeviceSet set) const {
  if (best_.devices == 0 || partition != best_.partition) return partition > best_.partition;
  const Key own = keys_[set], best_own = keys_[best_.devices];
  return own != best_own ? own > best_own : before(set, best_.devices);
}

/// Where no device is required, the greatest partition is found first: what remains is to see
/// whether better sets belong to others that are worth the same.
void BestEffort::try_best_division() {
  const int devices = size(question_.available);
  const Key greatest = rest(question_.available, devices, best_.partition);
  walk(question_.available, devices, greatest, [&](DeviceSet set) {
    if (size(set) == count_ && is_better(greatest, set)) best_ = {set, greatest};
  });
  greatest_known_ = true;
}

void BestEffort::try_set(DeviceSet set) {
  const DeviceSet others = question_.available ^ set;
  const int left = size(question_.available) - count_;
  const Key own = keys_[set];
  const bool tie_would_win = is_better(best_.partition, set);
  if (greatest_known_ && !tie_would_win) return;
  if (searched_) {
    // Where no device is required, a partition need be found by its best set only.
    const Key other = best_set_[others];
    const Key best_other = question_.required == 0 ? std::min(own, other) : other;
    const Key remainder = remainder_ == 0 ? 0 : best_remainder_[others];
    if (!is_better(own + left / count_ * best_other + remainder, set)) return;
  }
  const Key needed = best_.partition - own + (tie_would_win ? 0 : 1);
  const Key partition = own + rest(others, left, needed);
  if (is_better(partition, set)) best_ = {set, partition};
}

DeviceSet BestEffort::anchor(DeviceSet devices) const {
  return *std::ranges::find_if(strongest_first_,
                               [&](DeviceSet device) { return (device & devices) != 0; });
}

template <class Visit>
void BestEffort::walk(DeviceSet devices, int left, Key value, const Visit& visit) {
  while (left > count_) {
    const DeviceSet first_device = anchor(devices);
    const auto passes_by = [&](DeviceSet set) {
      const int left_then = left - size(set);
      const Key needed = value - keys_[set];
      if (bound(devices ^ set, left_then / count_, left_then % count_ != 0) < needed ||
          rest(devices ^ set, left_then, needed) != needed)
        return true;
      visit(set);
      devices ^= set;
      left = left_then;
      value = needed;
      return false;
    };
    const auto none_of = [&](int part) {
      return each_subset(devices ^ first_device, left - 1, part - 1, first_device, passes_by);
    };
    if (none_of(count_)) none_of(remainder_);
  }
  visit(devices);
}

/// The sets in the order of their strongest devices: none of them has the strongest one of any set
/// before it. So the second set is made without the strongest device, the third without the two
/// strongest, …
Key BestEffort::close_bound(DeviceSet devices, int size) const {
  const bool with_remainder = size % count_ != 0;
  Key full = 0, most_more = with_remainder ? -best_set_[devices] : 0;
  auto strongest = strongest_first_.begin();
  for (int sets = (size + count_ - 1) / count_; sets > 0; --sets) {
    full += best_set_[devices];
    if (with_remainder)
      most_more = std::max(most_more, best_remainder_[devices] - best_set_[devices]);
    while (sets > 1 && (*strongest & devices) == 0) ++strongest;
    devices &= ~*strongest;
  }
  return full + most_more;
}

Key BestEffort::rest(DeviceSet devices, int size, Key needed) {
  if (size <= count_) return keys_[devices];
  devices = tables_.representative(devices);
  Known& known = known_[devices];
  if (known.asked_in == asked_) {
    if (known.exact || known.most < needed) return known.most;
    needed = 0;  // asked for again with less to exceed: once and for all
  }
  const DeviceSet first_device = anchor(devices);
  const Key most = close_bound(devices, size);
  if (most < needed)
    known = {most, asked_, false};
  else if (size <= 2 * count_)
    known = {rest_of_two(devices, size, most), asked_, true};
  else
    known = search_rest(devices, size, first_device, needed, most);
  return known.most;
}

BestEffort::Known BestEffort::search_rest(DeviceSet devices, int size, DeviceSet first_device,
                                          Key needed, Key most) {
  Key best = needed - 1;
  const auto all_of = [&](int part) {
    const int left = size - part, full_sets = left / count_;
    const bool with_remainder = left % count_ != 0;
    const auto consider = [&](DeviceSet set) {
      const DeviceSet others = devices ^ set;
      const Key own = keys_[set];
      if (own + bound(others, full_sets, with_remainder) > best)
        best = std::max(best, own + rest(others, left, best + 1 - own));
      return best < most;
    };
    return each_subset(devices ^ first_device, size - 1, part - 1, first_device, consider);
  };
  const bool remainder_left = size % count_ != 0;
  if (all_of(count_) && remainder_left) all_of(remainder_);
  return {best, asked_, best >= needed};
}

/// Most of the work is here, so that it is the plainest: of every set and what it leaves.
Key BestEffort::rest_of_two(DeviceSet devices, int size, Key most) const {
  Key best = -1;
  const auto consider = [&](DeviceSet set) {
    best = std::max(best, keys_[set] + keys_[devices ^ set]);
    return best < most;
  };
  const int smaller = size - count_;
  const DeviceSet last = std::bit_floor(devices);
  if (smaller == count_)
    each_subset(devices ^ last, size - 1, count_ - 1, last, consider);
  else
    each_subset(devices, size, smaller, 0, consider);
  return best;
}

}  // namespace berth::placement
