#include "berth/placement/packed.h"

namespace berth::placement {

DeviceSet best_set(const Tables& tables, const Question& question, DeviceSet excluded) {
  const std::span<const Key> keys = tables.keys(question.objective);
  const std::span<const std::uint8_t> local = tables.local_pairs();
  const auto is_preferred = [&](DeviceSet set, DeviceSet than) {
    if (!local.empty() && local[set] != local[than]) return local[set] > local[than];
    for (const int count : {8, 4, 2}) {
      const std::span<const Key> best = tables.best_within(question.objective, count);
      const Key left = best[question.available ^ set],
                left_by_other = best[question.available ^ than];
      if (left != left_by_other) return left > left_by_other;
    }
    return before(set, than);
  };
  DeviceSet best = 0;
  const DeviceSet pool = question.available & ~question.required;
  each_subset(pool, size(pool), question.count - size(question.required), question.required,
              [&](DeviceSet set) {
                const bool better = best == 0 || keys[set] > keys[best] ||
                                    (keys[set] == keys[best] && is_preferred(set, best));
                if (better && set != excluded) best = set;
                return true;
              });
  return best;
}

}  // namespace berth::placement
