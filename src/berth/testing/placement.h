// Machines and a second, plain opinion for the tests and benchmarks of placement: everything that
// the search does cleverly is done here by looking at all there is.
#pragma once

#include <algorithm>
#include <bit>
#include <functional>
#include <string>
#include <vector>

#include "berth/base/rng.h"
#include "berth/placement/placement.h"
#include "berth/topology/topology.h"

namespace berth::placement::testing {

inline DeviceSet set_of(const std::vector<int>& devices) {
  DeviceSet set = 0;
  for (const int device : devices) set |= DeviceSet{1} << device;
  return set;
}

inline std::vector<int> list_of(DeviceSet set) {
  std::vector<int> devices;
  for (int device = 0; device < 64; ++device)
    if ((set >> device & 1) != 0) devices.push_back(device);
  return devices;
}

struct Machine {
  std::string name;
  int devices = 0;
  std::vector<std::int32_t> scores;

  Machine(std::string called, int count)
      : name(std::move(called)),
        devices(count),
        scores(static_cast<std::size_t>(count) * static_cast<std::size_t>(count), 0) {}

  std::int32_t& at(int a, int b) { return scores[static_cast<std::size_t>(a * devices + b)]; }
  std::int32_t at(int a, int b) const { return scores[static_cast<std::size_t>(a * devices + b)]; }
  void join(int a, int b, std::int32_t score) { at(a, b) = at(b, a) = score; }
  Chooser chooser() const { return *Chooser::make(scores, devices); }
};

template <class Score>
Machine machine(std::string name, int devices, const Score& score) {
  Machine made(std::move(name), devices);
  for (int a = 0; a < devices; ++a)
    for (int b = a + 1; b < devices; ++b) made.join(a, b, static_cast<std::int32_t>(score(a, b)));
  return made;
}

inline Machine machine_of(const topology::Topology& topology) {
  return machine(topology.name, static_cast<int>(topology.devices.size()), [&](int a, int b) {
    return topology::score(topology.link(static_cast<std::size_t>(a), static_cast<std::size_t>(b)));
  });
}

/// Of the catalogue.
inline Machine known(std::string_view name) {
  return machine_of(topology::known_machine(name).value());
}

/// Device i under the number i + turn.
inline Machine turned(const Machine& machine, int turn) {
  Machine made(machine.name + ", turned", machine.devices);
  for (int a = 0; a < machine.devices; ++a)
    for (int b = 0; b < a; ++b)
      made.join((a + turn) % machine.devices, (b + turn) % machine.devices, machine.at(a, b));
  return made;
}

inline DeviceSet turned(DeviceSet set, int turn, int devices) {
  DeviceSet made = 0;
  for (const int device : list_of(set)) made |= DeviceSet{1} << (device + turn) % devices;
  return made;
}

/// NVLinks of the hybrid cube mesh, PIX for neighbours, PHB within a half, SYS across.
inline Machine dgx1_volta() {
  const std::vector<std::string> nvlinks{"01122000", "10210200", "12020010", "21200001",
                                         "20000112", "02001021", "00101202", "00012120"};
  return machine("dgx1-v100 with PCIe", 8, [&](int a, int b) {
    const int pcie = a / 2 == b / 2 ? 50 : a / 4 == b / 4 ? 30 : 10;
    return 100 * (nvlinks[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] - '0') + pcie;
  });
}

/// Islands of `island` devices with NVLinks, which only the SYS level joins.
inline Machine islands(int devices, int island) {
  return machine("islands of " + std::to_string(island), devices,
                 [&](int a, int b) { return a / island == b / island ? 300 : 10; });
}

/// Random in one of several manners: many levels, few (many ties), islands, equal, strong and weak
/// devices.
inline Machine random_machine(Rng& rng, int devices) {
  const auto manner = rng.below(6);
  const int island = 2 + static_cast<int>(rng.below(static_cast<std::uint64_t>(devices)));
  std::vector<std::int64_t> strength;
  for (int i = 0; i < devices; ++i) strength.push_back(static_cast<std::int64_t>(rng.below(100)));
  return machine("random", devices, [&](int a, int b) -> std::int64_t {
    switch (manner) {
      case 0: return static_cast<std::int64_t>(rng.below(1000));
      case 1: return 10 * static_cast<std::int64_t>(1 + rng.below(5));
      case 2: return static_cast<std::int64_t>(rng.below(2));
      case 3: return a / island == b / island ? 400 + static_cast<std::int64_t>(rng.below(2)) : 10;
      case 4: return 70;
      default: return strength[static_cast<std::size_t>(a)] * strength[static_cast<std::size_t>(b)];
    }
  });
}

inline DeviceSet random_subset(Rng& rng, DeviceSet of, int count) {
  std::vector<int> pool = list_of(of);
  DeviceSet set = 0;
  for (; count > 0 && !pool.empty(); --count) {
    const auto i = static_cast<std::ptrdiff_t>(rng.below(pool.size()));
    set |= DeviceSet{1} << pool[static_cast<std::size_t>(i)];
    pool.erase(pool.begin() + i);
  }
  return set;
}

/// One that has an answer: some are available, some of these wanted, at times some of them
/// required.
inline Question random_question(Rng& rng, int devices) {
  Question question;
  const DeviceSet all = devices == 64 ? ~DeviceSet{0} : (DeviceSet{1} << devices) - 1;
  const int available = 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(devices)));
  question.available = random_subset(rng, all, available);
  question.count = 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(available)));
  if (rng.below(3) == 0)
    question.required =
        random_subset(rng, question.available,
                      static_cast<int>(rng.below(static_cast<std::uint64_t>(question.count + 1))));
  question.objective = static_cast<Objective>(rng.below(kObjectives));
  return question;
}

/// All there is of one machine, looked at plainly.
class Brute {
 public:
  explicit Brute(const Machine& machine)
      : machine_(machine),
        values_(machine.devices),
        left_(machine.devices),
        divisions_(machine.devices) {}

  Value value(DeviceSet set, Objective objective) {
    return values_.get(set, 0, objective, [&] { return look_at(list_of(set), objective); });
  }

  /// Every set that the question allows.
  template <class Visit>
  static void each_set(const Question& question, const Visit& visit) {
    for (DeviceSet set = question.available; set != 0; set = (set - 1) & question.available)
      if (std::popcount(set) == question.count && (question.required & ~set) == 0) visit(set);
  }

  /// By value, then the best 8-, 4- and 2-set left, then the smaller ascending list.
  DeviceSet packed(const Question& question, DeviceSet excluded = 0) {
    DeviceSet best = 0;
    each_set(question, [&](DeviceSet set) {
      if (set != excluded && (best == 0 || is_packed_better(set, best, question))) best = set;
    });
    return best;
  }

  struct Partition {
    Value total{-1, -1};
    Value own{-1, -1};
    DeviceSet devices = 0;

    void take(const Partition& other) {
      if (total != other.total ? other.total > total
          : own != other.own   ? other.own > own
                               : list_of(other.devices) < list_of(devices))
        *this = other;
    }
  };

  /// best-effort by its definition: all partitions, one after another.
  Partition all_partitions(const Question& question) {
    Partition best;
    std::vector<DeviceSet> sets;
    divide(question.available, question, sets, best);
    return best;
  }

  /// The same by a dynamic programme over all subsets, for where partitions are too many.
  Partition best_partition(const Question& question) {
    Partition best;
    each_set(question, [&](DeviceSet set) {
      const Value own = value(set, question.objective);
      const Value rest =
          best_division(question.available ^ set, question.count, question.objective);
      best.take({{own.first + rest.first, own.second + rest.second}, own, set});
    });
    return best;
  }

 private:
  Value look_at(const std::vector<int>& devices, Objective objective) const {
    Value value;
    std::int64_t weakest = devices.size() < 2 ? 0 : INT64_MAX;
    for (std::size_t i = 0; i < devices.size(); ++i)
      for (std::size_t j = i + 1; j < devices.size(); ++j) {
        value.second += machine_.at(devices[i], devices[j]);
        weakest = std::min<std::int64_t>(weakest, machine_.at(devices[i], devices[j]));
      }
    value.first = objective == Objective::sum   ? value.second
                  : objective == Objective::min ? weakest
                                                : ring(devices);
    return value;
  }

  /// All orders of up to eight; above, the strongest threshold that leaves a tour.
  std::int64_t ring(std::vector<int> devices) const {
    if (devices.size() < 2) return 0;
    if (devices.size() > 8) return ring_by_threshold(devices);
    std::int64_t best = 0;
    do {
      std::int64_t weakest = INT64_MAX;
      for (std::size_t i = 0; i < devices.size(); ++i)
        weakest = std::min<std::int64_t>(
            weakest, machine_.at(devices[i], devices[(i + 1) % devices.size()]));
      best = std::max(best, weakest);
    } while (std::next_permutation(devices.begin() + 1, devices.end()));
    return best;
  }

  std::int64_t ring_by_threshold(const std::vector<int>& devices) const {
    std::vector<std::int32_t> thresholds;
    for (const int a : devices)
      for (const int b : devices)
        if (a != b) thresholds.push_back(machine_.at(a, b));
    std::ranges::sort(thresholds, std::greater{});
    thresholds.erase(std::unique(thresholds.begin(), thresholds.end()), thresholds.end());
    return *std::ranges::find_if(thresholds,
                                 [&](std::int32_t least) { return has_tour(devices, least); });
  }

  /// Ends that paths from the first device through each subset can have.
  bool has_tour(const std::vector<int>& devices, std::int32_t least) const {
    const std::size_t count = devices.size();
    std::vector<std::uint32_t> near(count, 0), ends(std::size_t{1} << count, 0);
    for (std::size_t a = 0; a < count; ++a)
      for (std::size_t b = 0; b < count; ++b)
        if (a != b && machine_.at(devices[a], devices[b]) >= least) near[a] |= 1U << b;
    ends[1] = 1;
    for (std::size_t set = 1; set < ends.size(); set += 2)
      for (std::size_t end = 0; end < count; ++end) {
        if ((ends[set] >> end & 1) == 0) continue;
        for (std::size_t next = 1; next < count; ++next)
          if ((near[end] >> next & 1) != 0 && (set >> next & 1) == 0)
            ends[set | std::size_t{1} << next] |= 1U << next;
      }
    return (ends.back() & near[0]) != 0;
  }

  Value best_left(DeviceSet left, int count, Objective objective) {
    Value best;
    each_set({left, 0, count, objective},
             [&](DeviceSet set) { best = std::max(best, value(set, objective)); });
    return best;
  }

  Value left(DeviceSet set, int count, Objective objective) {
    return left_.get(set, count, objective, [&] { return best_left(set, count, objective); });
  }

  bool is_packed_better(DeviceSet set, DeviceSet than, const Question& question) {
    const Value mine = value(set, question.objective), other = value(than, question.objective);
    if (mine != other) return mine > other;
    for (const int count : {8, 4, 2}) {
      const Value left_here = left(question.available ^ set, count, question.objective);
      const Value left_there = left(question.available ^ than, count, question.objective);
      if (left_here != left_there) return left_here > left_there;
    }
    return list_of(set) < list_of(than);
  }

  /// The devices that are left go into whole sets and one smaller one, the lowest of them first.
  void divide(DeviceSet left, const Question& question, std::vector<DeviceSet>& sets,
              Partition& best) {
    if (left == 0) return judge(question, sets, best);
    const int remainder = std::popcount(left) % question.count;
    const DeviceSet low = left & -left;
    for (DeviceSet set = left; set != 0; set = (set - 1) & left) {
      const int size = std::popcount(set);
      if ((set & low) == 0 || (size != question.count && (size != remainder || remainder == 0)))
        continue;
      sets.push_back(set);
      divide(left ^ set, question, sets, best);
      sets.pop_back();
    }
  }

  void judge(const Question& question, const std::vector<DeviceSet>& sets, Partition& best) {
    Value total;
    for (const DeviceSet set : sets) {
      const Value one = value(set, question.objective);
      total = {total.first + one.first, total.second + one.second};
    }
    for (const DeviceSet set : sets)
      if (std::popcount(set) == question.count && (question.required & ~set) == 0)
        best.take({total, value(set, question.objective), set});
  }

  Value best_division(DeviceSet devices, int count, Objective objective) {
    return divisions_.get(devices, count, objective,
                          [&] { return look_for_division(devices, count, objective); });
  }

  /// Into sets of `count` and one of what remains; by all subsets that hold the lowest device.
  Value look_for_division(DeviceSet devices, int count, Objective objective) {
    if (devices == 0) return {};
    const int remainder = std::popcount(devices) % count;
    const DeviceSet low = devices & -devices;
    Value best{-1, -1};
    for (DeviceSet set = devices; set != 0; set = (set - 1) & devices) {
      const int size = std::popcount(set);
      if ((set & low) == 0 || (size != count && (size != remainder || remainder == 0))) continue;
      const Value own = value(set, objective);
      const Value rest = best_division(devices ^ set, count, objective);
      best = std::max(best, Value{own.first + rest.first, own.second + rest.second});
    }
    return best;
  }

  /// What was looked at before, by set, size and objective.
  class Known {
   public:
    explicit Known(int devices) : sets_(std::size_t{1} << devices) {}

    template <class Look>
    Value get(DeviceSet set, int count, Objective objective, const Look& look) {
      const auto place =
          static_cast<std::size_t>(count * kObjectives + static_cast<int>(objective));
      if (tables_.size() <= place) tables_.resize(place + 1);
      if (tables_[place].empty()) tables_[place].resize(sets_, kUnknown);
      if (tables_[place][set] != kUnknown) return tables_[place][set];
      const Value found = look();
      return tables_[place][set] = found;
    }

   private:
    static constexpr Value kUnknown{-7, -7};
    std::size_t sets_;
    std::vector<std::vector<Value>> tables_;
  };

  const Machine& machine_;
  Known values_, left_, divisions_;
};

}  // namespace berth::placement::testing
