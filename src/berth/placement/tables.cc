#include "berth/placement/tables.h"

#include <algorithm>

#include "berth/placement/alike.h"
#include "berth/placement/ring.h"

namespace berth::placement {
namespace {

/// The value of a set is that of the set without its lowest, without its highest and without both
/// devices, and the score of those two.
struct SumAndWeakest {
  std::vector<std::int32_t> sums, weakest;

  explicit SumAndWeakest(const Scores& scores)
      : sums(std::size_t{1} << scores.devices(), 0), weakest(sums.size(), 0) {
    for (std::size_t set = 1; set < sums.size(); ++set) {
      const std::size_t low = lowest(set), high = std::bit_floor(set);
      if (low == high) continue;
      const std::int32_t score = scores(lowest_index(low), lowest_index(high));
      sums[set] = sums[set ^ low] + sums[set ^ high] - sums[set ^ low ^ high] + score;
      weakest[set] = (set ^ low ^ high) == 0
                         ? score
                         : std::min({weakest[set ^ low], weakest[set ^ high], score});
    }
  }
};

/// The greatest of every set's subsets of a size, made one device at a time.
std::vector<Key> best_subset_of(int devices, std::span<const Key> keys) {
  std::vector<Key> best(keys.size(), 0);
  for (std::size_t set = 0; set < best.size(); ++set)
    if (size(set) == devices) best[set] = keys[set];
  for (std::size_t bit = 1; bit < best.size(); bit *= 2)
    for (std::size_t block = bit; block < best.size(); block += 2 * bit)
      for (std::size_t set = block; set < block + bit; ++set)
        best[set] = std::max(best[set], best[set ^ bit]);
  return best;
}

/// Every set has the pairs of the set without its lowest device, and those of that device.
std::vector<std::uint8_t> local_pairs_of(const Scores& scores) {
  const int all = scores.local_pairs(scores.all());
  if (all == 0 || all == scores.devices() * (scores.devices() - 1) / 2) return {};
  std::vector<std::uint8_t> pairs(std::size_t{1} << scores.devices());
  for (std::size_t set = 1; set < pairs.size(); ++set) {
    const std::size_t low = lowest(set);
    const int with_low = size(scores.node_of(lowest_index(low)) & set);
    pairs[set] = static_cast<std::uint8_t>(pairs[set ^ low] + with_low);
  }
  return pairs;
}

}  // namespace

Tables::Tables(const Scores& scores)
    : representatives_(representatives(scores)), local_pairs_(local_pairs_of(scores)) {
  const SumAndWeakest known(scores);
  const std::vector<std::int32_t> rings = rings_of_all_subsets(scores);
  const std::array<std::span<const std::int32_t>, kObjectives> firsts{known.sums, known.weakest,
                                                                      rings};
  for (std::size_t objective = 0; objective < firsts.size(); ++objective) {
    Table& table = tables_[objective];
    table.keys.resize(rings.size());
    for (std::size_t set = 0; set < rings.size(); ++set)
      table.keys[set] = key({firsts[objective][set], known.sums[set]});
    table.best_within[1].assign(rings.size(), 0);
    for (int count = 2; count <= kMostWithin; ++count)
      table.best_within[static_cast<std::size_t>(count)] = best_subset_of(count, table.keys);
  }
}

}  // namespace berth::placement
