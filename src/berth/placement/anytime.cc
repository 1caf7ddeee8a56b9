#include "berth/placement/anytime.h"

#include <algorithm>
#include <array>

#include "berth/placement/ring.h"

namespace berth::placement {
namespace {

class Search {
 public:
  Search(const Scores& scores, const Question& question, std::int64_t iterations,
         DeviceSet excluded)
      : scores_(scores),
        question_(question),
        pool_(question.available & ~question.required),
        excluded_(excluded),
        limits_(scores, question.available, question.count, question.objective),
        values_are_exact_(question.objective != Objective::ring ||
                          question.count <= kQuickRingDevices),
        left_(iterations) {
    for_each(question.available, [&](int device) {
      links_[static_cast<std::size_t>(device)] = scores.links(device, question.available);
    });
  }

  Found find() {
    const std::int64_t for_proof = left_ / 2;
    climb_from(question_.required, INT64_MIN);  // whatever the budget, there is an answer
    for_each(pool_, [&](int seed) {
      if (left_ > for_proof) climb_from(question_.required | one(seed), for_proof);
    });
    left_ = std::max(left_, for_proof);
    branch(question_.required, pool_);
    return {best_.devices, best_.devices == 0 ? open_ : std::max(best_.value, open_)};
  }

 private:
  struct Rank {
    DeviceSet devices = 0;
    Value value{-1, -1};
    int local_pairs = 0;           // on one NUMA node
    std::int64_t taken_links = 0;  // sum of its devices' links; the fewer, the more it leaves
  };

  static bool better(const Rank& a, const Rank& b) {
    if (a.value != b.value) return a.value > b.value;
    if (a.local_pairs != b.local_pairs) return a.local_pairs > b.local_pairs;
    if (a.taken_links != b.taken_links) return a.taken_links < b.taken_links;
    return before(a.devices, b.devices);
  }

  Value value_of(DeviceSet set) {
    const bool ring = question_.objective == Objective::ring;
    left_ -= 1 + (ring ? (std::int64_t{1} << std::min(size(set), kQuickRingDevices)) / 16 : 0);
    return quick_value_of(scores_, set, question_.objective);
  }

  std::int64_t links(int device) const { return links_[static_cast<std::size_t>(device)]; }

  Rank rank(DeviceSet set) {
    Rank made{set, value_of(set), scores_.local_pairs(set), 0};
    for_each(set, [&](int device) { made.taken_links += links(device); });
    return made;
  }

  /// The rank of the set with `in` instead of `out`. Most of the search's time is spent here.
  Rank swapped(const Rank& here, int out, int in) {
    const DeviceSet kept = here.devices ^ one(out);
    return {.devices = kept | one(in),
            .value = value_of(kept | one(in)),
            .local_pairs = here.local_pairs - size(scores_.node_of(out) & kept) +
                           size(scores_.node_of(in) & kept),
            .taken_links = here.taken_links - links(out) + links(in)};
  }

  void offer(const Rank& rank) {
    if (rank.devices != excluded_ && better(rank, best_)) best_ = rank;
  }

  void climb_from(DeviceSet set, std::int64_t stop_at) {
    if (size(set) > question_.count) return;
    while (size(set) < question_.count) set |= one(nearest(set));
    Rank here = rank(set);
    offer(here);
    while (step(here, stop_at)) {
    }
  }

  /// The device with the most to give to the set: its weakest link there, unless sums count; of
  /// equals the one with the most neighbours on its NUMA node.
  int nearest(DeviceSet set) const {
    int best = -1;
    std::int64_t most = -1;
    int most_local = 0;  // neighbours on its NUMA node
    for_each(pool_ & ~set, [&](int device) {
      std::int64_t gain = scores_.links(device, set);
      if (question_.objective != Objective::sum)
        for_each(set,
                 [&](int other) { gain = std::min<std::int64_t>(gain, scores_(device, other)); });
      if (gain < most) return;
      const int local = size(scores_.node_of(device) & set);
      if (gain == most && local <= most_local) return;
      most = gain, most_local = local, best = device;
    });
    return best;
  }

  /// To the first better set that differs in one device; whether there is one.
  bool step(Rank& here, std::int64_t stop_at) {
    const auto swap = [&](int out, int in) {
      const Rank there = swapped(here, out, in);
      offer(there);
      if (!better(there, here)) return false;
      here = there;
      return true;
    };
    for (DeviceSet out = here.devices & pool_; out != 0; out &= out - 1)
      for (DeviceSet in = pool_ & ~here.devices; in != 0 && left_ > stop_at; in &= in - 1)
        if (swap(lowest_index(out), lowest_index(in))) return true;
    return false;
  }

  /// All sets that are `taken` and some of `pool`. What cannot beat the best is not looked at:
  /// equal values are left to the climb, or a machine of equal devices would be looked at in vain.
  void branch(DeviceSet taken, DeviceSet pool) {
    const int open = question_.count - size(taken);
    if (size(pool) < open) return;
    if (open == 0) {
      offer(rank(taken));
      if (!values_are_exact_) open_ = std::max(open_, limits_.of(taken, 0));
      return;
    }
    const Value most = limits_.of(taken, pool);
    if (most <= best_.value) return;
    if (--left_ <= 0) {
      open_ = std::max(open_, most);
      return;
    }
    const DeviceSet next = one(most_promising(taken, pool));
    branch(taken | next, pool ^ next);
    branch(taken, pool ^ next);
  }

  int most_promising(DeviceSet taken, DeviceSet pool) const {
    int best = -1;
    std::int64_t most = -1;
    for_each(pool, [&](int device) {
      const std::int64_t gain = 2 * scores_.links(device, taken) + limits_.links(device);
      if (gain > most) most = gain, best = device;
    });
    return best;
  }

  const Scores& scores_;
  const Question question_;
  const DeviceSet pool_, excluded_;
  const Limits limits_;
  const bool values_are_exact_;
  std::int64_t left_;
  std::array<std::int64_t, kMostDevices> links_{};
  Rank best_;
  Value open_{-1, -1};  // of what the search did not come to
};

}  // namespace

Found find_set(const Scores& scores, const Question& question, std::int64_t iterations,
               DeviceSet excluded) {
  return Search(scores, question, iterations, excluded).find();
}

}  // namespace berth::placement
