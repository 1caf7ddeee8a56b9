#include <algorithm>
#include <functional>
#include <vector>

#include "berth/placement/anytime.h"

namespace berth::placement {
namespace {

/// Sum over the sets of a partition of what none of them can exceed.
std::int64_t partition_bound(const Scores& scores, const Question& question) {
  const int count = question.count, devices = size(question.available);
  const Limits limits(scores, question.available, count, question.objective);
  if (question.objective == Objective::sum) {
    std::int64_t twice = 0;
    for_each(question.available, [&](int device) { twice += limits.links(device); });
    return twice / 2;
  }
  // Sets are no stronger than their weakest device, so at best the strongest ones stand together.
  std::vector<std::int64_t> weakest;
  for_each(question.available, [&](int device) { weakest.push_back(limits.weakest(device)); });
  std::ranges::sort(weakest, std::greater{});
  std::int64_t bound = 0;
  for (int i = count; i <= devices; i += count) bound += weakest[static_cast<std::size_t>(i - 1)];
  const int remainder = devices % count;
  if (remainder < 2) return bound;
  const Limits of_remainder(scores, question.available, remainder, question.objective);
  std::int64_t strongest = 0;
  for_each(question.available,
           [&](int device) { strongest = std::max(strongest, of_remainder.weakest(device)); });
  return bound + strongest;
}

class Partition {
 public:
  Partition(const Scores& scores, const Question& question, std::int64_t iterations)
      : scores_(scores), question_(question), left_(iterations) {
    Question next = question;
    const int sets = (size(question.available) + question.count - 1) / question.count;
    while (next.available != 0) {
      next.count = std::min(next.count, size(next.available));
      const DeviceSet set = find_set(scores, next, iterations / (2 * sets)).devices;
      parts_.push_back({set, value(set)});
      next.available ^= set;
      next.required = 0;
    }
  }

  void improve() {
    for (bool improved = true; improved && left_ > 0;) {
      improved = false;
      for (std::size_t a = 0; a < parts_.size(); ++a)
        for (std::size_t b = a + 1; b < parts_.size(); ++b) improved |= swap_between(a, b);
    }
  }

  /// The best whole set, or the one that was built around the required devices.
  DeviceSet returned() const {
    Part best = parts_.front();
    if (question_.required != 0) return best.devices;
    for (const Part& part : parts_) {
      const bool better = part.value > best.value ||
                          (part.value == best.value && before(part.devices, best.devices));
      if (size(part.devices) == question_.count && better) best = part;
    }
    return best.devices;
  }

  std::int64_t score() const {
    std::int64_t sum = 0;
    for (const Part& part : parts_)
      sum += value_of(scores_, part.devices, question_.objective).first;
    return sum;
  }

 private:
  struct Part {
    DeviceSet devices;
    Value value;
  };

  Value value(DeviceSet set) {
    --left_;
    return quick_value_of(scores_, set, question_.objective);
  }

  bool swap_between(std::size_t a, std::size_t b) {
    Part &one_part = parts_[a], &other = parts_[b];
    for (DeviceSet out = one_part.devices & ~question_.required; out != 0; out &= out - 1) {
      for (DeviceSet in = other.devices; in != 0 && left_ > 0; in &= in - 1) {
        const DeviceSet both = lowest(out) | lowest(in);
        const Part mine{one_part.devices ^ both, value(one_part.devices ^ both)};
        const Part its{other.devices ^ both, value(other.devices ^ both)};
        const Value gain{mine.value.first + its.value.first, mine.value.second + its.value.second};
        if (gain <= Value{one_part.value.first + other.value.first,
                          one_part.value.second + other.value.second})
          continue;
        one_part = mine;
        other = its;
        return true;
      }
    }
    return false;
  }

  const Scores& scores_;
  const Question question_;
  std::int64_t left_;
  std::vector<Part> parts_;
};

}  // namespace

FoundPartition find_partition(const Scores& scores, const Question& question,
                              std::int64_t iterations) {
  Partition partition(scores, question, iterations);
  partition.improve();
  return {partition.returned(), partition.score(), partition_bound(scores, question)};
}

}  // namespace berth::placement
