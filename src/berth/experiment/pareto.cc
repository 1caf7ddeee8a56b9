#include "berth/experiment/pareto.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace berth::experiment {

Merit merit_of(const TrialReport& trial) {
  return {trial.scores, trial.scores.empty() ? HUGE_VAL : violation(trial.excesses)};
}

bool dominates(const Merit& a, const Merit& b) {
  if (a.violation != b.violation) return a.violation < b.violation;
  return a.scores != b.scores && std::ranges::equal(a.scores, b.scores, std::greater_equal<>());
}

std::vector<std::vector<std::size_t>> fronts(const std::vector<const Merit*>& merits,
                                             std::size_t enough) {
  std::vector<std::size_t> left(merits.size());
  std::iota(left.begin(), left.end(), 0);
  // In this order none is dominated by a later one.
  std::ranges::stable_sort(left, [&](std::size_t a, std::size_t b) {
    if (merits[a]->violation != merits[b]->violation)
      return merits[a]->violation < merits[b]->violation;
    return merits[a]->scores > merits[b]->scores;
  });
  std::vector<std::vector<std::size_t>> sorted;
  for (std::size_t count = 0; count < std::min(enough, merits.size());) {
    auto& front = sorted.emplace_back();
    std::vector<std::size_t> dominated;
    for (const auto each : left) {
      const bool behind = std::ranges::any_of(
          front, [&](auto other) { return dominates(*merits[other], *merits[each]); });
      (behind ? dominated : front).push_back(each);
    }
    count += front.size();
    left = std::move(dominated);
  }
  return sorted;
}

std::vector<double> crowding(const std::vector<const Merit*>& front) {
  std::vector<double> distances(front.size());
  std::vector<std::size_t> order(front.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t goal = 0; !front.empty() && goal < front[0]->scores.size(); ++goal) {
    const auto score = [&](std::size_t at) { return front[order[at]]->scores[goal]; };
    std::ranges::stable_sort(order, {}, [&](auto each) { return front[each]->scores[goal]; });
    const std::size_t last = order.size() - 1;
    const double range = score(last) - score(0);
    distances[order[0]] = distances[order[last]] = HUGE_VAL;
    for (std::size_t at = 1; at < last && range > 0; ++at)
      distances[order[at]] += (score(at + 1) - score(at - 1)) / range;
  }
  return distances;
}

}  // namespace berth::experiment
